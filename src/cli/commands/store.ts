import { DateTime, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { AppConfig } from "../../config/Config.ts"
import { failed } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"

/** docs/standbys.md#after-a-restore */
const markRestored = Command.make(
  "mark-restored",
  {
    allowsSubmits: Flag.Boolean("allow-submits").pipe(
      Flag.withDescription(
        "Nothing was submitted after the time of the restored state: submit waiting tasks without checking the vendors"
      ),
      Flag.withoutNegation,
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ allowsSubmits }) {
    const { markRestoredStore } = yield* Effect.promise(() => import("../../db/StoreTools.ts"))
    const { mark, store } = yield* markRestoredStore(allowsSubmits).pipe(
      Effect.provide(AppConfig.layer),
      Effect.mapError(({ message }) => failed(message))
    )
    const { holdsEnded, restoredAt, tasksInDoubt, trustedUntil } = mark
    const document = {
      store,
      restored_at: DateTime.formatIso(restoredAt),
      trusted_until: trustedUntil === null ? null : DateTime.formatIso(trustedUntil),
      tasks_in_doubt: tasksInDoubt,
      holds_ended: holdsEnded
    }
    yield* print(
      document,
      [
        `Marked ${store} as restored at ${document.restored_at}`,
        `Its newest heartbeat is from ${document.trusted_until ?? "no process"}`,
        `Unfinished tasks that may have been submitted: ${tasksInDoubt}`,
        `Open holds of calls and reservations ended now: ${holdsEnded}`
      ].join("\n")
    )
  })
).pipe(
  Command.withDescription(
    "Before the service starts, mark a store that Postgres tools restored to an earlier time"
  )
)

export const store = Command.make("store").pipe(
  Command.withDescription("Work with the store itself"),
  Command.withSubcommands([markRestored])
)
