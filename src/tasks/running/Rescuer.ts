import { Context, DateTime, Effect, Layer } from "effect"
import { eachToItsEnd } from "../../domain/EachToItsEnd.ts"
import { heartbeatSeconds } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { warnOnce } from "../../domain/WarnOnce.ts"
import * as Duty from "../../process/heartbeat/Duty.ts"
import { Process } from "../../process/heartbeat/Process.ts"
import { Hints } from "../../process/signals/Hints.ts"
import { DeliveryScheduler } from "../../webhooks/DeliveryScheduler.ts"
import { TaskStore } from "../TaskStore.ts"
import { TaskInbox } from "./TaskInbox.ts"

/** The maximum number of tasks that one statement frees. */
const orphansMax = 5000

/** Finds the work that a dead process left behind. ARCHITECTURE.md#rules-of-safety */
export class Rescuer extends Context.Service<
  Rescuer,
  {
    /**
     * Frees the work that dead processes had in hand, so that it is due at once. Tasks are freed one heartbeat later
     * than deliveries, because each process first takes its share of the tasks.
     */
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
      /** Frees in batches, so that other processes take the first tasks while the last are still being freed. */
      const release = Effect.gen(function* () {
        const since = DateTime.subtract(yield* process.aliveSince, { seconds: heartbeatSeconds })
        const freed = yield* tasks.releaseOrphans(since, orphansMax)
        if (freed === 0) return freed
        inbox.wake()
        hints.publishUnsafe("run", "")
        return freed
      }).pipe(Effect.repeat({ while: (freed) => freed === orphansMax }))
      return Rescuer.of({
        rescue: eachToItsEnd([release, deliveries.requeueLost], 2, (work) => work)
      })
    })
  )

  /** Frees deliveries as soon as a process dies. At each heartbeat interval one process scans for the rest. */
  static readonly layerLoop = Layer.merge(
    Layer.effectDiscard(
      Effect.gen(function* () {
        const death = yield* (yield* Process).deaths
        const { requeueLost } = yield* DeliveryScheduler
        yield* Effect.andThen(death, requeueLost).pipe(
          warnOnce("A rescue failed"),
          Effect.forever,
          Effect.forkScoped
        )
      })
    ),
    Duty.layer(
      { name: "rescue", seconds: heartbeatSeconds },
      Effect.flatMap(Rescuer, ({ rescue }) => rescue)
    )
  )
}
