import { Context, Duration, Effect, Layer, Option, Schedule } from "effect"
import type { Scope } from "effect"
import { AppConfig } from "../../config/Config.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { callbackRecheckSeconds } from "../../domain/Limits.ts"
import { KeyedSignal } from "../../process/KeyedSignal.ts"
import type { Signal } from "../../process/KeyedSignal.ts"
import { Process } from "../../process/Process.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { CallbackStore } from "./CallbackStore.ts"

/** Of a vendor that does not call, or cannot reach this service. */
const silent: Signal = { wait: Effect.sleep }

/**
 * Ends waits between polls of tasks whose vendors have called: at once when the callback came to the
 * process that runs the task, else when that process has looked, each second. ADR 0107.
 */
export class CallbackSignals extends Context.Service<
  CallbackSignals,
  {
    /** Receives the callbacks of a task that this process runs, until the scope closes. */
    readonly subscribe: (
      id: TaskId,
      account: VendorAccount
    ) => Effect.Effect<Signal, never, Scope.Scope>
    /** Does this process poll for the task? */
    readonly has: (id: TaskId) => boolean
    readonly notify: (id: TaskId) => Effect.Effect<void>
  }
>()("gateway/tasks/callbacks/CallbackSignals") {
  static readonly layer = Layer.effect(
    CallbackSignals,
    Effect.gen(function* () {
      const { publicUrl } = yield* AppConfig
      const process = yield* Process
      const store = yield* CallbackStore
      const signals = new KeyedSignal<TaskId>()
      const notify = (id: TaskId) => signals.notify(id)

      const look = Effect.suspend(() =>
        signals.size === 0
          ? Effect.void
          : Effect.flatMap(store.calledOf(process.id), (ids) =>
              Effect.forEach(ids, notify, { discard: true })
            )
      )
      if (Option.isSome(publicUrl)) {
        yield* look.pipe(
          Effect.catchCause((cause) => Effect.logWarning("Callbacks were not looked for", cause)),
          Effect.repeat(Schedule.spaced(Duration.seconds(callbackRecheckSeconds))),
          Effect.forkScoped
        )
      }

      return CallbackSignals.of({
        subscribe: (id, account) =>
          Option.isNone(publicUrl) || account.callbacks === undefined
            ? Effect.succeed(silent)
            : signals.subscribe(id),
        has: (id) => signals.has(id),
        notify
      })
    })
  )
}
