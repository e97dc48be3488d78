import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { layerTest, MockVendor, TestGateway } from "../../../src/testing/index.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Real time in which the store makes progress. */
const moment = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))

/** Creates a task and waits until the vendor has its job. */
const running = Effect.gen(function* () {
  const { fetch, key } = yield* TestGateway
  const vendor = yield* MockVendor
  const created = yield* fetch(path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ prompt: "A lighthouse" })
  })
  assert.strictEqual(created.status, 202)
  yield* Effect.repeat(Effect.andThen(moment, vendor.submits), {
    until: (submits) => submits.length === 1
  })
})

describe("a gateway in a test's own process, closed while a task runs and no time passes", () => {
  const moments = {
    "its job runs at the vendor": MockVendor.result("2 minutes"),
    "it waits to submit again": MockVendor.refused("RATE_LIMITED", "slow down"),
    "its submit is under way": MockVendor.refused("AMBIGUOUS", "who knows", "2 minutes")
  }
  for (const [what, step] of Object.entries(moments)) {
    it.effect(`closes without waiting: ${what}`, () =>
      Effect.provide(running, layerTest({ vendor: [step] }))
    )
  }
})
