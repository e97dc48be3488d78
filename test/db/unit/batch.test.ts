import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeBatch } from "../../../src/db/Batch.ts"

describe("runs of a batch that are kept apart", () => {
  it.effect("take together what comes meanwhile, and the first one waits for nobody", () =>
    Effect.gen(function* () {
      const runs: Array<ReadonlyArray<number>> = []
      const times: Array<number> = []
      const ask = yield* makeBatch({
        itemsMax: 100,
        runsMax: 1,
        apartMillis: 40,
        run: (items: ReadonlyArray<number>) =>
          Effect.sync(() => {
            runs.push(items)
            times.push(performance.now())
            return items
          })
      })
      const asked = performance.now()
      assert.strictEqual(yield* ask(1), 1)
      const second = yield* Effect.forkChild(ask(2))
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      const third = yield* Effect.forkChild(ask(3))
      assert.deepStrictEqual([yield* Fiber.join(second), yield* Fiber.join(third)], [2, 3])
      assert.deepStrictEqual(runs, [[1], [2, 3]])
      // Timers of Node fire up to a millisecond early
      assert.isAtLeast(times[1]! - asked, 39)
    })
  )
})
