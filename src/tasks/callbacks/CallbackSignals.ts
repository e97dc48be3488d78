import { Context, Duration, Effect, Layer, Option, Queue, Schedule } from "effect"
import type { Scope } from "effect"
import { AppConfig } from "../../config/Config.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { callbackRecheckSeconds } from "../../domain/Limits.ts"
import { Process } from "../../process/Process.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { CallbackStore } from "./CallbackStore.ts"

/** Ends waits between two polls of one job. */
export interface Bell {
  /** Until it rings, or at most so long. A ring before the wait counts. */
  readonly wait: (atMost: Duration.Duration) => Effect.Effect<void>
}

const silent: Bell = { wait: Effect.sleep }

/**
 * Wakes the polls of tasks that their vendors have called about: at once when the call came to the
 * process that runs the task, else when that one has looked, each second. ADR 0107.
 */
export class CallbackSignals extends Context.Service<
  CallbackSignals,
  {
    /** The bell of a task that this process runs, until the scope closes. */
    readonly hang: (id: TaskId, account: VendorAccount) => Effect.Effect<Bell, never, Scope.Scope>
    /** Whether the bell of this task hangs in this process. */
    readonly isHere: (id: TaskId) => boolean
    readonly ring: (id: TaskId) => Effect.Effect<void>
  }
>()("gateway/tasks/callbacks/CallbackSignals") {
  static readonly layer = Layer.effect(
    CallbackSignals,
    Effect.gen(function* () {
      const { publicUrl } = yield* AppConfig
      const process = yield* Process
      const store = yield* CallbackStore
      const bells = new Map<TaskId, Queue.Queue<void>>()

      const ring = (id: TaskId) =>
        Effect.sync(() => {
          const bell = bells.get(id)
          if (bell !== undefined) Queue.offerUnsafe(bell, undefined)
        })

      const look = Effect.suspend(() =>
        bells.size === 0
          ? Effect.void
          : Effect.flatMap(store.calledOf(process.id), (ids) =>
              Effect.forEach(ids, ring, { discard: true })
            )
      )
      if (Option.isSome(publicUrl)) {
        yield* look.pipe(
          Effect.catchCause((cause) => Effect.logWarning("Callbacks were not looked for", cause)),
          Effect.repeat(Schedule.spaced(Duration.seconds(callbackRecheckSeconds))),
          Effect.forkScoped
        )
      }

      const hangUp = (id: TaskId) =>
        Effect.map(Queue.sliding<void>(1), (queue) => {
          bells.set(id, queue)
          return queue
        })
      const unsubscribe = (id: TaskId, queue: Queue.Queue<void>) =>
        Effect.sync(() => {
          if (bells.get(id) === queue) bells.delete(id)
        })

      return CallbackSignals.of({
        hang: (id, account) =>
          Option.isNone(publicUrl) || account.callbacks === undefined
            ? Effect.succeed(silent)
            : Effect.map(
                Effect.acquireRelease(hangUp(id), (queue) => unsubscribe(id, queue)),
                (queue): Bell => ({
                  wait: (atMost) => Effect.asVoid(Effect.timeoutOption(Queue.take(queue), atMost))
                })
              ),
        isHere: (id) => bells.has(id),
        ring
      })
    })
  )
}
