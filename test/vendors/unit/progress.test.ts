import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Struct } from "effect"
import { Vendor } from "../../../src/catalog/Vendors.ts"
import type { Adapter } from "../../../src/vendors/Adapter.ts"
import { adapters } from "../../../src/vendors/Adapters.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import { percentOf } from "../../../src/vendors/Polling.ts"
import { accountAt } from "../../support/upstreams/accounts.ts"

const described = (progress?: { readonly at: string; readonly of: number }): Adapter => {
  const { jobs } = Schema.decodeSync(Vendor)({
    name: "acme",
    jobs: {
      submit: { path: "/jobs", json: {}, handle: { id: "$.id" } },
      poll: { path: "/jobs/{id}" },
      state: { at: "$.status", running: ["in_progress"], done: ["ok"], failed: ["bad"] },
      ...(progress === undefined ? {} : { progress }),
      results: { urls: ["$.files"] },
      error: { message: ["$.message"] },
      failures: [],
      models: [
        {
          model: "m",
          result: "videos",
          body: { type: "object", properties: {}, additionalProperties: false },
          price: { per: "call", amount: "1.00" }
        }
      ]
    }
  })
  return describedAdapter("acme", Struct.omit(jobs!, ["models"]))
}

const polled = Effect.fnUntraced(function* (adapter: Adapter, response: object) {
  const body = Buffer.from(JSON.stringify({ id: "v", status: "in_progress", ...response }))
  const http = () => Effect.succeed({ status: 200, headers: {}, body })
  const account = yield* accountAt(adapter, "https://a.test", "key", { http })
  const progress = yield* account.poll({ id: "v", model: "m", submittedAtMillis: 0 })
  assert.strictEqual(progress._tag, "Running")
  return progress._tag === "Running" ? progress.percent : undefined
})

/** docs/vendors-as-files.md#progress */
describe("the progress that a vendor reports", () => {
  const figures: ReadonlyArray<readonly [unknown, number, number | undefined]> = [
    [0, 1, 0],
    [0.29, 1, 29],
    ["0.5", 1, 50],
    [37, 100, 37],
    [37.6, 100, 38],
    ["12", 30, 40],
    [-3, 100, 0],
    [1000, 100, 100],
    ["half", 100, undefined],
    ["", 100, undefined],
    ["1e3", 100, undefined],
    [null, 100, undefined],
    [true, 100, undefined],
    [[50], 100, undefined],
    [Number.NaN, 100, undefined],
    [Number.POSITIVE_INFINITY, 100, undefined]
  ]
  it("is a whole number of percent, and ignored if it is not a number", () => {
    for (const [reported, of, expected] of figures) {
      assert.strictEqual(percentOf(reported, of), expected, JSON.stringify([reported, of]))
    }
  })

  it.effect("is read where a description says, and not otherwise", () =>
    Effect.gen(function* () {
      const adapter = described({ at: "$.job.progress", of: 1 })
      assert.strictEqual(yield* polled(adapter, { job: { progress: 0.42 } }), 42)
      assert.isUndefined(yield* polled(adapter, {}))
      assert.isUndefined(yield* polled(described(), { job: { progress: 0.42 }, progress: 42 }))
    })
  )

  it.effect("is read of OpenAI's videos if it is a number", () =>
    Effect.gen(function* () {
      const adapter = adapters["openai-video"]
      assert.strictEqual(yield* polled(adapter, { progress: 37 }), 37)
      for (const progress of [null, "soon", undefined]) {
        assert.isUndefined(yield* polled(adapter, { progress }))
      }
    })
  )
})
