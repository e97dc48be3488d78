import { Context, Effect } from "effect"
import type { Runtime } from "effect"
import { Command } from "effect/cli"

/** Replaces how the process ends, because the exit codes of a service differ from those of a command. */
export const TeardownOfProcess = Context.Reference<(teardown: Runtime.Teardown) => void>(
  "gateway/cli/TeardownOfProcess",
  { defaultValue: () => () => {} }
)

/** docs/operating.md */
export const serve = Command.make(
  "serve",
  {},
  Effect.fnUntraced(function* () {
    const use = yield* TeardownOfProcess
    // Imported here, because no other command needs the whole service
    const { service, teardown } = yield* Effect.promise(() => import("../Service.ts"))
    use(teardown)
    return yield* service
  })
).pipe(
  Command.withDescription("Run the service until SIGTERM or SIGINT, configured by the environment")
)
