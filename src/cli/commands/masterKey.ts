import { Effect } from "effect"
import { Command } from "effect/cli"
import { failed } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"

/** docs/operating.md#rotating-master_key */
export const rotateMasterKeyCommand = Command.make(
  "rotate-master-key",
  {},
  Effect.fnUntraced(function* () {
    const { rotateMasterKey } = yield* Effect.promise(() => import("./rotateMasterKey.ts"))
    const done = yield* Effect.mapError(rotateMasterKey, ({ message }) => failed(message))
    yield* print(
      done,
      `Everything is encrypted under the first key of MASTER_KEY (${done.rewritten} values were rewritten)`
    )
  })
).pipe(Command.withDescription("Re-encrypt everything stored under the first key of MASTER_KEY"))
