import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeDeadlines } from "../../../src/domain/Deadlines.ts"

describe("the timeouts of attempts", () => {
  it.effect("expire at their own times, and never after their attempt has ended", () =>
    Effect.gen(function* () {
      const deadline = yield* makeDeadlines(Duration.seconds(30))
      const clock = yield* Clock.Clock
      const expired: Array<readonly [string, number]> = []
      const begin = (name: string) =>
        deadline(clock, () => expired.push([name, clock.currentTimeMillisUnsafe() / 1000]))
      const first = begin("first")
      yield* TestClock.adjust("10 seconds")
      begin("second")
      yield* TestClock.adjust("5 seconds")
      first()
      begin("third")
      yield* TestClock.adjust("24999 millis")
      assert.deepStrictEqual(expired, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(expired, [["second", 40]])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(expired.slice(1), [["third", 45]])
      // The fiber ended with the last timeout
      yield* TestClock.adjust("1 hour")
      const began = clock.currentTimeMillisUnsafe() / 1000
      begin("fourth")
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(expired.slice(2), [["fourth", began + 30]])
    })
  )

  it.effect("do not expire early if the wall clock is set forward", () =>
    Effect.gen(function* () {
      const deadline = yield* makeDeadlines(Duration.seconds(30))
      const clock = yield* Clock.Clock
      let jumpMillis = 0
      const jumping: Clock.Clock = {
        ...clock,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + jumpMillis
      }
      let expired = 0
      deadline(jumping, () => (expired += 1))
      yield* TestClock.adjust("500 millis")
      deadline(jumping, () => (expired += 1))
      jumpMillis = 3_600_000
      yield* TestClock.adjust("29500 millis")
      assert.strictEqual(expired, 1)
      yield* TestClock.adjust("499 millis")
      assert.strictEqual(expired, 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(expired, 2)
    })
  )
})
