import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { heartbeatSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Process } from "../process/Process.ts"
import { ManageReplays } from "../users/ManageReplays.ts"
import { DeliveryScheduler } from "../webhooks/DeliveryScheduler.ts"
import { TaskInbox } from "./TaskInbox.ts"
import { TaskStore } from "./TaskStore.ts"

/** Finds the work that a dead process left behind. ARCHITECTURE.md#rules-of-safety */
export class Rescuer extends Context.Service<
  Rescuer,
  {
    /** Frees what dead processes had in hand: it is due again at once. */
    readonly rescue: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/Rescuer") {
  static readonly layer = Layer.effect(
    Rescuer,
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const deliveries = yield* DeliveryScheduler
      const process = yield* Process
      const inbox = yield* TaskInbox
      return Rescuer.of({
        rescue: Effect.gen(function* () {
          yield* deliveries.requeueLost
          const freed = yield* tasks.releaseOrphans(yield* process.aliveSince)
          if (freed > 0) inbox.wake()
        })
      })
    })
  )

  /** The loop, at the interval of heartbeats. It also deletes expired idempotency keys. */
  static readonly layerLoop = Layer.effectDiscard(
    Effect.forkScoped(
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
  )
}
