import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, Exit, Layer } from "effect"
import { Rescuer } from "../../../src/tasks/running/Rescuer.ts"
import { TaskInbox } from "../../../src/tasks/running/TaskInbox.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import { DeliveryScheduler } from "../../../src/webhooks/DeliveryScheduler.ts"
import { mockProcess } from "../../support/mockProcess.ts"

/** ARCHITECTURE.md#rules-of-safety */
describe("the rescuer", () => {
  it.effect("frees the tasks of dead processes even if their deliveries cannot be read", () =>
    Effect.gen(function* () {
      let isFreed = false
      const layer = Rescuer.layer.pipe(
        Layer.provide(
          Layer.mergeAll(
            TaskInbox.layer,
            mockProcess({
              aliveSince: Effect.map(Effect.yieldNow, () => DateTime.makeUnsafe(0))
            }),
            Layer.mock(DeliveryScheduler, {
              requeueLost: Effect.die("a row that does not decode")
            }),
            Layer.mock(TaskStore, {
              releaseOrphans: () =>
                Effect.andThen(
                  Effect.yieldNow,
                  Effect.sync(() => {
                    isFreed = true
                    return 1
                  })
                )
            })
          )
        )
      )
      const rescuer = Context.get(yield* Layer.build(layer), Rescuer)
      const exit = yield* Effect.exit(rescuer.rescue)
      assert.isTrue(isFreed)
      assert.isTrue(Exit.isFailure(exit), "the defect is reported")
    }).pipe(Effect.scoped)
  )
})
