import { Effect } from "effect"
import { Command } from "effect/cli"
import { AppConfig } from "../../config/Config.ts"
import { failed } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"

/** docs/operating.md#upgrade */
export const migrate = Command.make(
  "migrate",
  {},
  Effect.fnUntraced(function* () {
    const { migrateStore } = yield* Effect.promise(() => import("../../db/StoreTools.ts"))
    const { applied, store } = yield* migrateStore.pipe(
      Effect.provide(AppConfig.layer),
      Effect.mapError(({ message }) => failed(message))
    )
    yield* print(
      { store, applied },
      applied.length === 0
        ? `${store} is up to date`
        : [`Applied to ${store}:`, ...applied.map((name) => `  ${name}`)].join("\n")
    )
  })
).pipe(
  Command.withDescription("Bring the schema up to date and exit; safe while processes are running")
)
