/** For `@effect/vitest`: the sample of docs/developing.md. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { layerTest, MockVendor, TestGateway } from "generation-gateway/testing"
import { path } from "./path.ts"

const gateway = layerTest({ vendor: [MockVendor.result("2 minutes")] })

layer(gateway)("a program on the gateway", (it) => {
  it.effect("orders a picture", () =>
    Effect.gen(function* () {
      const { fetch, key, webhooks } = yield* TestGateway
      yield* webhooks.listen()
      const response = yield* fetch(path, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ prompt: "A lighthouse" })
      })
      assert.strictEqual(response.status, 202)
      const { event } = yield* webhooks.received("task.succeeded")
      assert.strictEqual(event.type, "task.succeeded")
      assert.strictEqual((yield* (yield* MockVendor).submits).length, 1)
    })
  )
})
