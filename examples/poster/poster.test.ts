import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Gateway, MockVendor, TestGateway, WebhookSenderLog } from "../../src/index.ts"
import { orderPoster } from "./poster.ts"

/** Makes time pass, a second at a step, until the work is done. */
const whileTimePasses = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(work)
    while (fiber.pollUnsafe() === undefined) {
      yield* TestClock.adjust("1 second")
      // A moment of real time, in which the store gets on with its work
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
    }
    return yield* Fiber.join(fiber)
  })

it.effect("a poster that takes five minutes is waited for", () =>
  Effect.gen(function* () {
    const url = yield* whileTimePasses(orderPoster(yield* TestGateway, "A lighthouse"))
    assert.match(url, /^http:\/\/gateway\.test\/artifacts\//u)
    assert.strictEqual((yield* (yield* MockVendor).submits).length, 1)
    assert.deepEqual(yield* (yield* WebhookSenderLog).sent, [])
  }).pipe(Effect.provide(Gateway.layerTest({ vendor: [MockVendor.result("5 minutes")] })))
)

it.effect("a busy vendor is asked again, and a refused prompt is told with its code", () =>
  Effect.gen(function* () {
    const gateway = yield* TestGateway
    const error = yield* Effect.flip(whileTimePasses(orderPoster(gateway, "A lighthouse")))
    assert(error._tag === "NoPoster")
    assert.strictEqual(error.code, 3001)
    assert.strictEqual(error.detail, "not this")
    assert.strictEqual((yield* (yield* MockVendor).submits).length, 2)
  }).pipe(
    Effect.provide(
      Gateway.layerTest({
        vendor: [
          MockVendor.refused("RATE_LIMITED", "slow down"),
          MockVendor.refused("CONTENT", "not this", "3 seconds")
        ]
      })
    )
  )
)
