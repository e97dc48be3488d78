import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Gateway, MockVendor, TestGateway, WebhookSenderLog } from "../../src/index.ts"
import { orderPoster } from "./poster.ts"

/** Moves the clock second by second until the work is done. */
const whileTimePasses = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(work)
    while (fiber.pollUnsafe() === undefined) {
      yield* TestClock.adjust("1 second")
      // A moment of real time, in which the store makes progress
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
    }
    return yield* Fiber.join(fiber)
  })

const gateway = Gateway.layerTest({
  vendor: [
    MockVendor.result("2 minutes"),
    MockVendor.refused("RATE_LIMITED", "slow down"),
    MockVendor.refused("CONTENT", "not this", "3 seconds")
  ]
})

layer(gateway, { timeout: "1 minute" })("a program that orders posters", (it) => {
  it.effect("waits for one that takes two minutes", () =>
    Effect.gen(function* () {
      const url = yield* whileTimePasses(orderPoster(yield* TestGateway, "A lighthouse"))
      assert.match(url, /^http:\/\/gateway\.test\/artifacts\//u)
      const [order, ...others] = yield* (yield* MockVendor).submits
      assert.strictEqual(order?.model, "text-to-image-max")
      assert.deepEqual(others, [])
      assert.deepEqual(yield* (yield* WebhookSenderLog).sent, [])
    })
  )

  it.effect("does not see that the vendor was busy, but its final refusal", () =>
    Effect.gen(function* () {
      const ordered = orderPoster(yield* TestGateway, "A lighthouse")
      const error = yield* Effect.flip(whileTimePasses(ordered))
      assert(error._tag === "NoPoster")
      assert.strictEqual(error.code, 3001)
      assert.strictEqual(error.detail, "not this")
      assert.strictEqual((yield* (yield* MockVendor).submits).length, 3)
    })
  )
})
