import { assert, it } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { RateLeaseStore } from "../../../src/tasks/submission/RateLeaseStore.ts"
import { RateLimiter } from "../../../src/tasks/submission/RateLimiter.ts"

const polls = { key: "dashscope:1/polls", calls: 20, perMillis: 1000 }

/** Leases as `rate_leases_take` does, in memory, so that only the clock of the test passes. */
const leasesInMemory = Layer.sync(RateLeaseStore, () => {
  let next = 0
  return RateLeaseStore.of({
    lease: ({ count, now, spacing }) =>
      Effect.sync(() => {
        const first = Math.max(next, DateTime.toEpochMillis(now))
        next = first + count * Duration.toMillis(spacing)
        return DateTime.makeUnsafe(first)
      }),
    openFault: () => Effect.void,
    closeFaults: () => Effect.void,
    openFaults: () => Effect.succeed([])
  })
})

it.effect(
  "10,000 open tasks of one account: each is polled once before any is polled again, 20 a second",
  () =>
    Effect.gen(function* () {
      const limiter = yield* RateLimiter
      const tasks = 10_000
      const asked = Array.from({ length: tasks }, () => 0)
      const perSecond = new Map<number, number>()
      /** The number of tasks that were polled at least this often. */
      const reached = [tasks]
      let unfair = 0
      for (let task = 0; task < tasks; task += 1) {
        const poll = Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.sync(() => {
            const second = Math.floor(now / 1000)
            perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
            const times = (asked[task]! += 1)
            reached[times] = (reached[times] ?? 0) + 1
            if (reached[times - 1]! < tasks) unfair += 1
          })
        )
        // As `VendorWork` does: a permit, the poll, the wait that the vendor named
        yield* Effect.forkScoped(
          Effect.forever(
            Effect.andThen(
              limiter.acquire(polls),
              Effect.andThen(poll, Effect.sleep("2500 millis"))
            )
          )
        )
      }
      for (let round = 1; round <= 2; round += 1) {
        yield* TestClock.adjust(Duration.seconds(tasks / polls.calls))
        assert.strictEqual(Math.min(...asked), round)
        assert.isAtMost(Math.max(...asked), round + 1)
      }
      assert.strictEqual(unfair, 0)
      assert.isAtMost(Math.max(...perSecond.values()), polls.calls + 1)
    }).pipe(Effect.scoped, Effect.provide(RateLimiter.layer.pipe(Layer.provide(leasesInMemory))))
)
