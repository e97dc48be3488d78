import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { RateLeaseStore } from "../../../src/tasks/submission/RateLeaseStore.ts"
import { RateLimiter } from "../../../src/tasks/submission/RateLimiter.ts"
import { advance } from "../../support/gateway.ts"
import { describeStores } from "../../support/stores.ts"

const polls = { key: "dashscope:1/polls", calls: 20, perMillis: 1000 }
const submits = { key: "dashscope:1/submits", calls: 2, perMillis: 60_000 }

describeStores("limiter of calls to a vendor account", (database) => {
  const store = RateLeaseStore.layer.pipe(Layer.provideMerge(database))
  /** Two processes on one store. */
  const makeTwo = Effect.gen(function* () {
    const build = Layer.build(Layer.fresh(RateLimiter.layer))
    return [yield* build, yield* build].map((context) =>
      Effect.provideContext(RateLimiter, context)
    )
  })

  it.effect("two processes together make two submits a minute, and no more", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      for (const process of yield* makeTwo) {
        const limiter = yield* process
        for (let n = 0; n < 2; n += 1) {
          yield* Effect.forkScoped(
            Effect.gen(function* () {
              yield* limiter.acquire(submits)
              times.push(Math.floor((yield* Clock.currentTimeMillis) / 30_000))
            })
          )
        }
      }
      yield* advance("2 minutes", "5 seconds")
      // The first after a read of the store, each later one half a minute after it
      assert.deepEqual(times, [0, 1, 2, 3])
    }).pipe(Effect.scoped, Effect.provide(store))
  )

  it.effect("an interrupted waiter takes no permit", () =>
    Effect.gen(function* () {
      const [process] = yield* makeTwo
      const limiter = yield* process!
      yield* limiter.acquire(submits)
      const second = yield* Effect.forkScoped(limiter.acquire(submits))
      const third = yield* Effect.forkScoped(limiter.acquire(submits))
      yield* advance("10 seconds", "5 seconds")
      yield* Fiber.interrupt(second)
      yield* advance("20 seconds", "5 seconds")
      yield* Fiber.join(third)
    }).pipe(Effect.scoped, Effect.provide(store))
  )

  it.effect("10,000 open tasks of one account are polled in order, 20 a second", () =>
    Effect.gen(function* () {
      const [process] = yield* makeTwo
      const limiter = yield* process!
      const tasks = 10_000
      const asked = Array.from({ length: tasks }, () => 0)
      let total = 0
      for (let task = 0; task < tasks; task += 1) {
        yield* Effect.forkScoped(
          Effect.forever(
            Effect.andThen(
              limiter.acquire(polls),
              Effect.sync(() => {
                asked[task]! += 1
                total += 1
              })
            )
          )
        )
      }
      const seconds = 30
      for (let second = 0; second < seconds; second += 1) yield* advance("1 second", "1 second")
      assert.isAtMost(total, 20 * (seconds + 1))
      assert.isAtLeast(total, 20 * (seconds - 1))
      // No task is polled twice before every task was polled once
      assert.isAtMost(Math.max(...asked), 1)
    }).pipe(Effect.scoped, Effect.provide(store))
  )
})
