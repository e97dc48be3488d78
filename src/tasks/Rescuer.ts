import { Context, Effect, Layer } from "effect"
import { heartbeatSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import * as Duty from "../process/Duty.ts"
import { Hints } from "../process/Hints.ts"
import { Process } from "../process/Process.ts"
import { ManageReplays } from "../users/ManageReplays.ts"
import { DeliveryScheduler } from "../webhooks/DeliveryScheduler.ts"
import { TaskInbox } from "./TaskInbox.ts"
import { TaskStore } from "./TaskStore.ts"

/** Tasks that one statement frees. */
const orphansMax = 1000

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
      const hints = yield* Hints
      /** In batches, so that all processes take of the first while the last are freed. */
      const release = Effect.gen(function* () {
        const freed = yield* tasks.releaseOrphans(yield* process.aliveSince, orphansMax)
        if (freed > 0) {
          inbox.wake()
          hints.publishUnsafe("run", "")
        }
        return freed
      })
      return Rescuer.of({
        rescue: Effect.all(
          [
            deliveries.requeueLost,
            Effect.repeat(release, { while: (freed) => freed === orphansMax })
          ],
          { concurrency: "unbounded", discard: true }
        )
      })
    })
  )

  /** At the interval of heartbeats, and when a process has become dead. Deletes expired idempotency keys too. */
  static readonly layerLoop = Duty.layer(
    { name: "rescue", seconds: heartbeatSeconds, afterDeath: true },
    Effect.gen(function* () {
      yield* (yield* Rescuer).rescue
      yield* (yield* ManageReplays).deleteExpired
    })
  )
}
