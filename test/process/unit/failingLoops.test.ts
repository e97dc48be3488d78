import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger, Queue } from "effect"
import { TestClock } from "effect/testing"
import { ownershipReconcileSeconds } from "../../../src/domain/limits/Limits.ts"
import * as Duty from "../../../src/process/heartbeat/Duty.ts"
import * as Retention from "../../../src/process/retention/Retention.ts"
import * as OwnershipReconciler from "../../../src/tasks/running/OwnershipReconciler.ts"
import { Rescuer } from "../../../src/tasks/running/Rescuer.ts"
import { RunningTasks } from "../../../src/tasks/running/RunningTasks.ts"
import { DeliveryScheduler } from "../../../src/webhooks/DeliveryScheduler.ts"
import { mockProcess } from "../../support/mockProcess.ts"

type Work = Effect.Effect<void>

/** Each loop around some work. */
const loops = {
  'The duty "tidy" failed': (work: Work) => Duty.layer({ name: "tidy", seconds: 60 }, work),
  "Retention: old rows failed": (work: Work) =>
    Retention.layer(Effect.succeed([{ name: "old rows", run: work }])),
  "Reconciling owned tasks failed": (work: Work) =>
    Layer.provide(OwnershipReconciler.layer, Layer.mock(RunningTasks, { reconcile: work })),
  "A rescue failed": (work: Work) =>
    Layer.provide(Rescuer.layerLoop, [
      Layer.mock(DeliveryScheduler, { requeueLost: work }),
      Layer.mock(Rescuer, { rescue: Effect.void })
    ])
}

it.effect.each(Object.entries(loops))(
  "%s: logged for the first of several failures, and again after a success",
  ([failed, layerOf]) =>
    Effect.gen(function* () {
      const lines: Array<unknown> = []
      const logger = Logger.make(({ message }) => {
        lines.push(...[message].flat().slice(0, 1))
      })
      const outcomes = ["fails", "fails", "succeeds", "fails", "fails"]
      let runs = 0
      const work = Effect.suspend(() =>
        outcomes[runs++] === "fails" ? Effect.die("away") : Effect.void
      )
      const turns = yield* Queue.unbounded<void>()
      const turn = Effect.succeed(Queue.take(turns))
      const process = mockProcess({
        // The loop under test takes the turns alone
        duty: ({ name }) => (name === "rescue" ? Effect.succeed(Effect.never) : turn),
        deaths: turn
      })
      yield* Layer.build(
        layerOf(work).pipe(Layer.provide(process), Layer.provide(Logger.layer([logger])))
      )
      const logged = []
      for (const _ of outcomes) {
        yield* Queue.offer(turns, undefined)
        yield* TestClock.adjust(runs === 0 ? 0 : ownershipReconcileSeconds * 1000)
        logged.push(lines.filter((line) => line === failed).length)
      }
      assert.deepStrictEqual([runs, ...logged], [5, 1, 1, 1, 2, 2])
    })
)
