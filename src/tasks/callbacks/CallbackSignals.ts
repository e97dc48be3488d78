import { Context, Duration, Effect, Layer, Option, Schedule, Schema } from "effect"
import type { Scope } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { TaskId } from "../../domain/Ids.ts"
import { callbackRecheckSeconds } from "../../domain/Limits.ts"
import { Hints } from "../../process/Hints.ts"
import { KeyedSignal } from "../../process/KeyedSignal.ts"
import type { Signal } from "../../process/KeyedSignal.ts"
import { makeFiberPlaces } from "../../process/Places.ts"
import { Process } from "../../process/Process.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { CallbackStore } from "./CallbackStore.ts"

const isTaskId = Schema.is(TaskId)

/** Of a vendor that does not call, or cannot reach this service. */
const silent: Signal = { wait: Effect.sleep }

/**
 * Ends waits between polls of tasks whose vendors have called: at once when the callback came to the
 * process that runs the task, soon when it came to another, and at the latest when the process that runs the
 * task has looked, each second. ADR 0107.
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
      const hints = yield* Hints
      const signals = new KeyedSignal<TaskId>()
      const notify = (id: TaskId) => signals.notify(id)

      const look = Effect.suspend(() =>
        signals.size === 0
          ? Effect.void
          : Effect.flatMap(store.takePending(process.id), (ids) =>
              Effect.forEach(ids, notify, { discard: true })
            )
      ).pipe(
        Effect.catchCause((cause) => Effect.logWarning("Pending callbacks were not read", cause))
      )
      if (Option.isSome(publicUrl)) {
        const run = yield* makeFiberPlaces
        hints.subscribe("callback", (id) => {
          if (isTaskId(id) && signals.has(id)) run(look)
        })
        yield* look.pipe(
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
        notify: (id) =>
          Effect.suspend(() => {
            if (!signals.has(id)) hints.publishUnsafe("callback", id)
            return notify(id)
          })
      })
    })
  )
}
