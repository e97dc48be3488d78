import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { layerTest, MockVendor, TestGateway } from "../../src/testing/index.ts"
import { orderPoster } from "./poster.ts"

const gateway = layerTest({
  vendor: [
    MockVendor.result("2 minutes"),
    MockVendor.refused("RATE_LIMITED", "slow down"),
    MockVendor.refused("CONTENT", "not this", "3 seconds")
  ]
})

layer(gateway, { timeout: "1 minute" })("a program that orders posters", (it) => {
  it.effect("waits for one that takes two minutes", () =>
    Effect.gen(function* () {
      const test = yield* TestGateway
      const url = yield* test.whileTimePasses(orderPoster(test, "A lighthouse"))
      assert.match(url, /^http:\/\/gateway\.test\/artifacts\//u)
      const [order, ...others] = yield* (yield* MockVendor).submits
      assert.strictEqual(order?.model, "text-to-image-max")
      assert.deepEqual(others, [])
    })
  )

  it.effect("does not see that the vendor was busy, but its final refusal", () =>
    Effect.gen(function* () {
      const test = yield* TestGateway
      const error = yield* Effect.flip(test.whileTimePasses(orderPoster(test, "A lighthouse")))
      assert(error._tag === "NoPoster")
      assert.strictEqual(error.code, 3001)
      assert.strictEqual(error.detail, "not this")
      assert.strictEqual((yield* (yield* MockVendor).submits).length, 3)
    })
  )
})
