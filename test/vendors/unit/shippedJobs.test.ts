import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Result, Schema, Struct } from "effect"
import { bytePlus } from "../../../src/catalog/jobs/BytePlus.ts"
import { decodeDescribed } from "../../../src/catalog/jobs/DescribedBody.ts"
import { falQueue } from "../../../src/catalog/jobs/Fal.ts"
import { jobFaults } from "../../../src/catalog/jobs/JobFaults.ts"
import { JobProtocol } from "../../../src/catalog/jobs/JobProtocol.ts"
import { luma } from "../../../src/catalog/jobs/Luma.ts"
import { openAiVideos } from "../../../src/catalog/jobs/OpenAiVideos.ts"
import { replicatePredictions } from "../../../src/catalog/jobs/Replicate.ts"
import { capturedBy, quote } from "../../../src/catalog/Price.ts"
import { shippedJobVendors } from "../../../src/catalog/ShippedVendors.ts"
import type { Vendor } from "../../../src/catalog/Vendors.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import type { VendorErrorClass } from "../../../src/vendors/VendorError.ts"
import { request } from "../../support/upstreams/accounts.ts"

/** docs/reference/vendors.md#job-vendors: what the shipped descriptions say of the documented responses. */

const modelOf = ({ jobs }: Vendor, name: string) => jobs!.models.find((it) => it.model === name)!

/** An account of a shipped vendor that gives this response to every request. */
const accountOf = ({ jobs, name }: Vendor, status: number, json: unknown) =>
  describedAdapter(name, Struct.omit(jobs!, ["models"])).make({
    account: {
      id: `${name}:a`,
      provider: name,
      key: Redacted.make("key"),
      baseUrl: "https://vendor.example",
      weight: 1
    },
    accountId: `jobs/${name}@${name}:a`,
    auth: {},
    http: () => Effect.succeed({ status, headers: {}, body: Buffer.from(JSON.stringify(json)) }),
    toNamed: () => Effect.die("no other host is named"),
    mayDisableInspection: false,
    observeResponse: () => Effect.void
  })

const submitted = (vendor: Vendor, name: string, status: number, json: unknown) => {
  const { body, result, submit } = modelOf(vendor, name)
  const described = { body, ...(submit === undefined ? {} : { submit }) }
  const given = Result.getOrThrow(decodeDescribed(body, { prompt: "p" }))
  const order = request(`${vendor.name}/${name}`, name, given, { described, result })
  return accountOf(vendor, status, json).submit(order)
}

const polled = (vendor: Vendor, json: unknown) =>
  accountOf(vendor, 200, json).poll({ id: "j", model: "m", submittedAtMillis: 0 })

const errorOf = (code: string, message = "m") => ({ error: { code, message } })

describe("the shipped job vendors", () => {
  it("have no faults if their models are elsewhere", () => {
    for (const protocol of [falQueue, replicatePredictions, openAiVideos]) {
      assert.deepStrictEqual(Schema.decodeSync(JobProtocol)(protocol), protocol)
      assert.deepStrictEqual(jobFaults({ ...protocol, models: [] as never }), [])
    }
  })

  it("have no faults, and a price for the smallest body of each model", () => {
    for (const { jobs, name } of shippedJobVendors.values()) {
      assert.deepStrictEqual(jobFaults(jobs!), [], name)
      for (const { body, model, price } of jobs!.models) {
        const fields = Object.keys(Object(body["properties"]))
        const given = { prompt: "p", image: "https://example.com/a.png" }
        const needed = Struct.pick(
          given,
          (["prompt", "image"] as const).filter(
            (field) => fields.includes(field) && (body["required"] as Array<string>).includes(field)
          )
        )
        const decoded = Result.getOrThrow(decodeDescribed(body, needed))
        const held = Result.getOrThrow(quote({ price }, decoded))
        assert.isTrue(held > 0n, `${name}/${model}`)
      }
    }
  })

  const refusals: ReadonlyArray<readonly [Vendor, string, number, unknown, VendorErrorClass]> = [
    [luma, "uni-1", 400, { detail: "prompt is too long" }, "FATAL_CLIENT"],
    [luma, "uni-1", 422, { detail: [{ msg: "bad data", loc: [] }] }, "FATAL_CLIENT"],
    [luma, "uni-1", 413, { detail: "too large" }, "MEDIA"],
    [luma, "uni-1", 401, { detail: "no such key" }, "OPERATOR"],
    [luma, "uni-1", 402, { detail: "no balance" }, "OPERATOR"],
    [luma, "uni-1", 429, { detail: "concurrent jobs" }, "RATE_LIMITED"],
    [luma, "uni-1", 503, { detail: "ingestion" }, "RETRYABLE"],
    [luma, "uni-1", 502, { detail: "upstream" }, "AMBIGUOUS"],
    [bytePlus, "seedance-2-0", 400, errorOf("InvalidParameter"), "FATAL_CLIENT"],
    [
      bytePlus,
      "seedance-2-0",
      400,
      errorOf("InputTextSensitiveContentDetected.PolicyViolation"),
      "CONTENT"
    ],
    [bytePlus, "seedance-2-0", 400, errorOf("InvalidParameter.OversizedImage"), "MEDIA"],
    [bytePlus, "seedance-2-0", 403, errorOf("AccountOverdueError"), "OPERATOR"],
    [bytePlus, "seedance-2-0", 404, errorOf("ModelNotOpen"), "GONE"],
    [bytePlus, "seedance-2-0", 404, errorOf("InvalidEndpointOrModel.NotFound"), "GONE"],
    [bytePlus, "seedance-2-0", 429, errorOf("QuotaExceeded"), "RATE_LIMITED"],
    [bytePlus, "seedance-2-0", 500, errorOf("InternalServiceError"), "AMBIGUOUS"],
    [
      bytePlus,
      "seedream-4-5",
      200,
      { data: [errorOf("OutputImageSensitiveContentDetected")] },
      "CONTENT"
    ],
    [bytePlus, "seedream-4-5", 200, { data: [] }, "AMBIGUOUS"]
  ]

  it.effect("treat a refused submit as in doubt unless the vendor's page says what it means", () =>
    Effect.gen(function* () {
      for (const [vendor, model, code, json, expected] of refusals) {
        const failure = yield* Effect.flip(submitted(vendor, model, code, json))
        assert.strictEqual(
          failure.class,
          expected,
          `${vendor.name} ${code} ${JSON.stringify(json)}`
        )
      }
    })
  )

  const failures: ReadonlyArray<readonly [Vendor, unknown, VendorErrorClass]> = [
    [luma, { state: "failed", failure_code: "content_moderated" }, "CONTENT"],
    [luma, { state: "failed", failure_code: "corrupt_input" }, "MEDIA"],
    [luma, { state: "failed", failure_code: "budget_exhausted" }, "OPERATOR"],
    [luma, { state: "failed", failure_code: "generation_failed" }, "FAILED"],
    [
      bytePlus,
      { status: "failed", ...errorOf("OutputVideoSensitiveContentDetected.PolicyViolation") },
      "CONTENT"
    ],
    [bytePlus, { status: "expired" }, "FAILED"]
  ]

  it.effect("classify a failed job by the vendor's codes", () =>
    Effect.gen(function* () {
      for (const [vendor, json, expected] of failures) {
        const failure = yield* Effect.flip(polled(vendor, json))
        assert.strictEqual(failure.class, expected, JSON.stringify(json))
      }
    })
  )

  it.effect("charge Seedance by its tokens, with the hold as an upper bound", () =>
    Effect.gen(function* () {
      const content = { video_url: "https://files.example/v.mp4" }
      const usage = { completion_tokens: 87_300, total_tokens: 87_300 }
      const done = yield* polled(bytePlus, { status: "succeeded", content, usage })
      assert(done._tag === "Done")
      const { body: schema, price } = modelOf(bytePlus, "seedance-2-0")
      const body = Result.getOrThrow(decodeDescribed(schema, { prompt: "p", duration: 4 }))
      const held = Result.getOrThrow(quote({ price }, body))
      // A video of four seconds with 1280 by 720 pixels, as measured by a reseller
      const charged = capturedBy(price, held, { body, usage: done.result.usage, results: 1 })
      assert.strictEqual(charged as bigint | undefined, 61_110_000n)
      assert.isTrue(held > 61_110_000n && held < 65_000_000n, `${held}`)
    })
  )
})
