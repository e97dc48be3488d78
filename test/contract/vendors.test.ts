import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { Adapter } from "../../src/models/CatalogEntry.ts"
import { Handle } from "../../src/vendors/VendorClient.ts"
import type {
  Progress,
  SubmitRequest,
  VendorAccount,
  VendorErrorClass
} from "../../src/vendors/VendorClient.ts"
import { accountAt, picture, request } from "../support/upstreams/accounts.ts"
import { dashscope } from "../support/upstreams/dashscope.ts"
import { fal } from "../support/upstreams/fal.ts"
import { gemini } from "../support/upstreams/gemini.ts"
import { openai } from "../support/upstreams/openai.ts"
import { replicate } from "../support/upstreams/replicate.ts"
import { Upstream } from "../support/upstreams/Upstream.ts"
import type { Fault, Protocol } from "../support/upstreams/Upstream.ts"

interface Subject {
  readonly adapter: Adapter
  readonly protocol: Protocol
  /** Behind the address of the upstream. */
  readonly base: string
  readonly request: SubmitRequest
  /** How many results the request asks for. */
  readonly count: number
  readonly isBlocking: boolean
  /** Faults that this family has no words for. */
  readonly lacks?: ReadonlyArray<Fault>
  /** What a refused medium comes to where the vendor does not tell it from another parameter. */
  readonly media?: VendorErrorClass
  /** The vendor says itself how long to wait, when no header does. Milliseconds. */
  readonly canCancel?: boolean
}

const subjects: ReadonlyArray<Subject> = [
  {
    adapter: "dashscope-async",
    protocol: dashscope,
    base: "/api/v1",
    request: request(
      "image-edit",
      "wan2.5-i2i-preview",
      { prompt: "p", images: ["artifact:1"], n: 3, size: "1280*1280", prompt_extend: false },
      { media: [picture("#/images/0")] }
    ),
    count: 3,
    isBlocking: false,
    canCancel: true
  },
  {
    adapter: "dashscope-sync",
    protocol: dashscope,
    base: "",
    request: request("text-to-image-max", "qwen-image-max", { prompt: "p", size: "1664*928" }),
    count: 1,
    isBlocking: true
  },
  {
    adapter: "gemini-image",
    protocol: gemini,
    base: "",
    request: request(
      "image-edit-pro",
      "gemini-3-pro-image-preview",
      { prompt: "p", images: ["artifact:1"], aspect_ratio: "16:9", resolution: "2K" },
      { media: [picture("#/images/0")] }
    ),
    count: 1,
    isBlocking: true,
    media: "FATAL_CLIENT"
  },
  {
    adapter: "openai-image",
    protocol: openai,
    base: "/v1",
    request: request("text-to-image-preview", "gpt-image-1", { prompt: "p", n: 2 }),
    count: 2,
    isBlocking: true,
    media: "FATAL_CLIENT"
  },
  {
    adapter: "openai-video",
    protocol: openai,
    base: "/v1",
    request: request("text-to-video-spark", "sora-2", { prompt: "p", size: "1280*720" }),
    count: 1,
    isBlocking: false,
    media: "FATAL_CLIENT"
  },
  {
    adapter: "fal-queue",
    protocol: fal,
    base: "",
    request: request(
      "text-to-image-preview",
      "fal-ai/flux/dev",
      { prompt: "p", n: 2, size: "1280*1280", safety_filter: true },
      { input: { fields: { n: "num_images", size: { to: "image_size", as: "size-object" } } } }
    ),
    count: 2,
    isBlocking: false,
    canCancel: true
  },
  {
    adapter: "replicate",
    protocol: replicate,
    base: "/v1",
    request: request(
      "text-to-image-preview",
      "black-forest-labs/flux-schnell",
      { prompt: "p", n: 2 },
      { input: { fields: { n: "num_outputs" }, constants: { output_format: "png" } } }
    ),
    count: 2,
    isBlocking: false,
    canCancel: true
  }
]

/** Faults of a submit, what they mean, and how many jobs were bought then. */
const submitFaults: ReadonlyArray<readonly [Fault, VendorErrorClass, number, string]> = [
  ["429", "RATE_LIMITED", 0, "a 429 without Retry-After"],
  ["429-wait", "RATE_LIMITED", 0, "a 429 with Retry-After"],
  ["unavailable", "RETRYABLE", 0, "a 503 in the vendor's own words"],
  ["edge-502", "AMBIGUOUS", 0, "a 502 from an edge"],
  ["edge-504", "AMBIGUOUS", 0, "a 504 from an edge"],
  ["drop-before", "AMBIGUOUS", 0, "a connection that breaks before the vendor takes the job"],
  ["drop-after", "AMBIGUOUS", 1, "a connection that breaks after the vendor took the job"],
  ["garbage", "AMBIGUOUS", 1, "a 200 that cannot be read"],
  ["operator", "OPERATOR", 0, "a fault of the service's own account"],
  ["content", "CONTENT", 0, "refused content"],
  ["client", "FATAL_CLIENT", 0, "an invalid parameter"],
  ["media", "MEDIA", 0, "a medium that the vendor cannot use"]
]

const throughJson = (handle: Handle): Handle =>
  Schema.decodeUnknownSync(Handle)(JSON.parse(JSON.stringify(handle)))

for (const subject of subjects) {
  describe(`vendor family ${subject.adapter}`, () => {
    let upstream: Upstream
    beforeAll(async () => {
      upstream = await Upstream.start(subject.protocol)
    })
    beforeEach(() => upstream.reset())
    afterAll(() => upstream.close())

    const connect = Effect.suspend(() =>
      accountAt(subject.adapter, `${upstream.url}${subject.base}`, upstream.key)
    )

    /** Polls like a process that was restarted: with a new account and the stored handle. */
    const finish = Effect.fnUntraced(function* (handle: Handle) {
      const account = yield* connect
      for (;;) {
        const progress: Progress = yield* account.poll(throughJson(handle))
        if (progress._tag === "Done") return progress.result.items
      }
    })

    const run = Effect.fnUntraced(function* (account: VendorAccount) {
      const submitted = yield* account.submit(subject.request)
      return submitted._tag === "Done" ? submitted.result.items : yield* finish(submitted.handle)
    })

    it.effect("buys a job once and brings its results", () =>
      Effect.gen(function* () {
        const items = yield* run(yield* connect)
        assert.strictEqual(items.length, subject.count)
        assert.strictEqual(upstream.paidSubmits, 1)
      })
    )

    for (const [fault, kind, paid, what] of submitFaults) {
      const expected = fault === "media" ? (subject.media ?? kind) : kind
      it.effect(`${what} is ${expected}`, () =>
        Effect.gen(function* () {
          const account = yield* connect
          upstream.submitFaults = [fault]
          const error = yield* Effect.flip(account.submit(subject.request))
          assert.strictEqual(error.class, expected, error.message)
          assert.strictEqual(upstream.paidSubmits, paid)
          assert.notInclude(JSON.stringify(error), upstream.key)
          if (fault === "429-wait") assert.strictEqual(error.retryAfterMillis, 7000)
          if (fault === "429") assert.isUndefined(error.retryAfterMillis)
        })
      )
    }

    it.effect("nobody listening is RETRYABLE: no byte was sent", () =>
      Effect.gen(function* () {
        const account = yield* accountAt(subject.adapter, "http://127.0.0.1:9", upstream.key)
        const error = yield* Effect.flip(account.submit(subject.request))
        assert.strictEqual(error.class, "RETRYABLE", error.message)
      })
    )

    it.effect("a wrong key is OPERATOR", () =>
      Effect.gen(function* () {
        const base = `${upstream.url}${subject.base}`
        const account = yield* accountAt(subject.adapter, base, "wrong-key")
        const error = yield* Effect.flip(account.submit(subject.request))
        assert.strictEqual(error.class, "OPERATOR", error.message)
      })
    )

    if (subject.count > 1) {
      it.effect("a partial failure brings what was made", () =>
        Effect.gen(function* () {
          upstream.ending = "partial"
          assert.strictEqual((yield* run(yield* connect)).length, subject.count - 1)
        })
      )
    }

    if (subject.adapter !== "openai-video") {
      it.effect("a success without any result fails, and is not asked for again", () =>
        Effect.gen(function* () {
          upstream.ending = "nothing"
          const error = yield* Effect.flip(run(yield* connect))
          assert.include(["FAILED", "CONTENT"], error.class)
        })
      )
    }

    if (subject.isBlocking) return

    it.effect("a job that failed upstream is FAILED, and is not asked for again", () =>
      Effect.gen(function* () {
        upstream.ending = "failed"
        const error = yield* Effect.flip(run(yield* connect))
        assert.strictEqual(error.class, "FAILED", error.message)
      })
    )

    it.effect("a job that failed for its content is CONTENT", () =>
      Effect.gen(function* () {
        upstream.ending = "content"
        const error = yield* Effect.flip(run(yield* connect))
        assert.strictEqual(error.class, "CONTENT", error.message)
      })
    )

    const pollFaults: ReadonlyArray<readonly [Fault, VendorErrorClass]> = [
      ["drop-before", "RETRYABLE"],
      ["edge-502", "RETRYABLE"],
      ["edge-504", "RETRYABLE"],
      ["unavailable", "RETRYABLE"],
      ["garbage", "RETRYABLE"],
      ["429-wait", "RATE_LIMITED"]
    ]
    for (const [fault, kind] of pollFaults) {
      it.effect(`a poll that meets ${fault} is ${kind}, and the next one goes on`, () =>
        Effect.gen(function* () {
          const account = yield* connect
          const submitted = yield* account.submit(subject.request)
          assert(submitted._tag === "Accepted")
          upstream.askFaults = [fault]
          const error = yield* Effect.flip(account.poll(submitted.handle))
          assert.strictEqual(error.class, kind, error.message)
          assert.strictEqual((yield* finish(submitted.handle)).length, subject.count)
        })
      )
    }

    it.effect("a handle of something else is LOST", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip((yield* connect).poll({ other: 1 }))
        assert.strictEqual(error.class, "LOST")
      })
    )

    if (subject.canCancel === true) {
      it.effect("a job that waits can be cancelled", () =>
        Effect.gen(function* () {
          const account = yield* connect
          const submitted = yield* account.submit(subject.request)
          assert(submitted._tag === "Accepted")
          assert.strictEqual(yield* account.cancel(submitted.handle), "Canceled")
        })
      )
    }
  })
}
