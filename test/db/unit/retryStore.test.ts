import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import { retryStore } from "../../../src/db/StoreFailures.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"

const away = new StoreUnavailable({ cause: undefined })
const run = (write: Effect.Effect<unknown, StoreUnavailable>) => ({
  "by itself": retryStore(write),
  "in an uninterruptible region": Effect.uninterruptibleMask((restore) =>
    retryStore(write, restore)
  )
})

describe("a write that is repeated while the store is unavailable", () => {
  for (const name of ["by itself", "in an uninterruptible region"] as const) {
    it.effect(`${name} waits 100 ms, then twice as long each time, at most 5 s`, () =>
      Effect.gen(function* () {
        const times: Array<number> = []
        const write = Effect.suspend(() =>
          Effect.flatMap(Clock.currentTimeMillis, (millis) => {
            times.push(millis)
            return times.length < 9 ? Effect.fail(away) : Effect.succeed("written")
          })
        )
        const writing = yield* Effect.forkChild(run(write)[name])
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* Fiber.join(writing), "written")
        const waits = times.slice(1).map((time, n) => time - times[n]!)
        assert.deepStrictEqual(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000])
      })
    )
  }

  it.effect("can be interrupted while it waits, but never while it writes", () =>
    Effect.gen(function* () {
      const answer = Latch.makeUnsafe()
      const writes: Array<string> = []
      let isAway = true
      const write = Effect.suspend(() => {
        writes.push("begun")
        return Effect.andThen(answer.await, () => {
          writes.push("ended")
          return isAway ? Effect.fail(away) : Effect.void
        })
      })
      const retried = run(write)["in an uninterruptible region"]
      const waiting = yield* Effect.forkChild(retried)
      yield* Effect.yieldNow
      const leaving = yield* Effect.forkChild(Fiber.interrupt(waiting))
      yield* Effect.yieldNow
      assert.deepStrictEqual(writes, ["begun"])
      yield* answer.open
      yield* Fiber.join(leaving)
      assert.deepStrictEqual(writes, ["begun", "ended"])
      isAway = false
      answer.closeUnsafe()
      const followed = Effect.uninterruptibleMask((restore) =>
        Effect.andThen(retryStore(write, restore), () => {
          writes.push("followed")
          return Effect.void
        })
      )
      const writing = yield* Effect.forkChild(followed)
      yield* Effect.yieldNow
      const stopping = yield* Effect.forkChild(Fiber.interrupt(writing))
      yield* Effect.yieldNow
      yield* answer.open
      yield* Fiber.join(stopping)
      // Nothing can interrupt between a write and what follows it
      assert.deepStrictEqual(writes.slice(2), ["begun", "ended", "followed"])
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(writing)))
    })
  )
})
