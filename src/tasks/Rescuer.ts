import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { heartbeatSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Process } from "../process/Process.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { ManageReplays } from "../users/ManageReplays.ts"
import { DeliveryScheduler } from "../webhooks/DeliveryScheduler.ts"
import { TaskStore } from "./TaskStore.ts"

/** Unowned tasks that one rescue notifies; the next one finds the rest. */
const tasksPerRescueMax = 1000

/** Finds the work that a dead process or a lost message left behind. ARCHITECTURE.md#rules-of-safety */
export class Rescuer extends Context.Service<
  Rescuer,
  {
    /** Clears dead owners, and notifies the actors of tasks without an owner. */
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
          const unowned = yield* tasks.releaseOrphans(yield* process.aliveSince, tasksPerRescueMax)
          yield* Effect.forEach(unowned, notifier.notifyTask, { discard: true })
        })
      })
    })
  )

  /** The loop, at the interval of heartbeats. It also deletes expired idempotency keys. */
  static readonly layerLoop = Singleton.make(
    "Rescuer",
    Effect.gen(function* () {
      const { rescue } = yield* Rescuer
      const { deleteExpired } = yield* ManageReplays
      return yield* Effect.andThen(rescue, deleteExpired).pipe(
        Effect.catchCause((cause) => Effect.logWarning("A rescue failed", cause)),
        Effect.repeat(Schedule.spaced(Duration.seconds(heartbeatSeconds))),
        Effect.asVoid
      )
    })
  )
}
