import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { heartbeatSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Process } from "../process/Process.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { ManageReplays } from "../users/ManageReplays.ts"
import { DeliveryScheduler } from "../webhooks/DeliveryScheduler.ts"
import { TaskStore } from "./TaskStore.ts"

/** How many unowned tasks one sweep notifies: the rest is found by the next. */
const tasksPerSweepMax = 1000

/** Finds what a dead process or a lost message left behind (ARCHITECTURE.md#rules-of-safety). */
export class Rescuer extends Context.Service<
  Rescuer,
  {
    /** Clears the owners that are dead, and notifies the actors of tasks that nobody owns. */
    readonly rescue: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/Rescuer") {
  static readonly layer = Layer.effect(
    Rescuer,
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const deliveries = yield* DeliveryScheduler
      const process = yield* Process
      const notifier = yield* WorkNotifier
      return Rescuer.of({
        rescue: Effect.gen(function* () {
          yield* deliveries.requeueLost
          const unowned = yield* tasks.sweep(yield* process.aliveSince, tasksPerSweepMax)
          yield* Effect.forEach(unowned, notifier.notifyTask, { discard: true })
        })
      })
    })
  )

  /** The loop: every heartbeat. Idempotency keys that are too old go in the same round. */
  static readonly layerLoop = Singleton.make(
    "Rescuer",
    Effect.gen(function* () {
      const { rescue } = yield* Rescuer
      const { deleteExpired } = yield* ManageReplays
      return yield* Effect.andThen(rescue, deleteExpired).pipe(
        Effect.catchCause((cause) => Effect.logWarning("A sweep failed", cause)),
        Effect.repeat(Schedule.spaced(Duration.seconds(heartbeatSeconds))),
        Effect.asVoid
      )
    })
  )
}
