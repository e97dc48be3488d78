import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, Schema, Stream, Struct } from "effect"
import type { Scope } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import { make as makeSimulator } from "../../../src/sandbox/Simulator.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { gemini } from "../../../src/testing/vendors/GeminiProtocol.ts"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import type { Adapter } from "../../../src/vendors/Adapter.ts"
import { Handle } from "../../../src/vendors/VendorClient.ts"
import type { Progress, SubmitRequest, VendorAccount } from "../../../src/vendors/VendorClient.ts"
import type { VendorError, VendorErrorClass } from "../../../src/vendors/VendorError.ts"
import { pause } from "../../support/until.ts"
import { accountAt, picture, request } from "../../support/upstreams/accounts.ts"
import { falAdapter, falDescribed } from "../../support/upstreams/describedFal.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"
import type { Ending, Fault, Protocol } from "../../support/upstreams/Upstream.ts"

interface Subject {
  readonly adapter: AdapterName | "described-fal"
  /** Set for a described vendor. */
  readonly described?: Adapter
  readonly protocol: Protocol
  /** The path after the upstream's origin. */
  readonly base: string
  readonly request: SubmitRequest
  /** The number of results in the request. */
  readonly count: number
  readonly isBlocking: boolean
  /** The class of a refused medium where the vendor has one code for all parameters. */
  readonly media?: VendorErrorClass
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
      "gemini-3-pro-image",
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
    request: request("text-to-image-preview", "gpt-image-1.5", { prompt: "p", n: 2 }),
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
    adapter: "described-fal",
    described: falAdapter,
    protocol: fal,
    base: "",
    request: request(
      "described-fal/flux",
      "fal-ai/flux/dev",
      { prompt: "p", num_images: 2 },
      { described: falDescribed }
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

/** Faults of a submit, their class, and the number of jobs that exist afterwards. */
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

/** One vendor, and how its faults are produced. */
interface Bench {
  readonly count: number
  readonly canCancel: boolean
  readonly isBlocking: boolean
  readonly connect: Effect.Effect<VendorAccount, never, Scope.Scope>
  /** Prepares the fault or ending, and returns the request to submit for it. */
  readonly order: (how?: { readonly fault?: Fault; readonly ending?: Ending }) => SubmitRequest
  readonly faults: ReadonlyArray<Fault>
  readonly endings: ReadonlyArray<Ending>
  /** The class of a refused medium, where it differs from other vendors. */
  readonly media?: VendorErrorClass
  /** Of `429-wait`, in milliseconds. */
  readonly wait: number
  readonly paidSubmits: (order: SubmitRequest) => Effect.Effect<number>
  /** How many polls arrived at the vendor. */
  readonly polls?: () => number
}

/** Polls like a restarted process: with a new account and the stored handle. */
const finish = Effect.fnUntraced(function* ({ connect }: Bench, handle: Handle) {
  const account = yield* connect
  for (;;) {
    const progress: Progress = yield* account.poll(throughJson(handle))
    if (progress._tag === "Done") return progress.result.items
    yield* TestClock.adjust(progress.pollAfter)
  }
})

const run = Effect.fnUntraced(function* (bench: Bench, order: SubmitRequest) {
  const submitted = yield* (yield* bench.connect).submit(order)
  return submitted._tag === "Done" ? submitted.result.items : yield* finish(bench, submitted.handle)
})

/** Holds for every vendor, including the simulator. */
const contract = (make: () => Bench) => {
  const known = make()

  it.effect("submits a job once and returns its results", () =>
    Effect.gen(function* () {
      const bench = make()
      const order = bench.order()
      assert.strictEqual((yield* run(bench, order)).length, bench.count)
      assert.strictEqual(yield* bench.paidSubmits(order), 1)
    })
  )

  for (const [fault, kind, paid, what] of submitFaults) {
    if (!known.faults.includes(fault)) continue
    const expected = fault === "media" ? (known.media ?? kind) : kind
    it.effect(`${what} is ${expected}`, () =>
      Effect.gen(function* () {
        const bench = make()
        const account = yield* bench.connect
        const order = bench.order({ fault })
        const error = yield* Effect.flip(account.submit(order))
        assert.strictEqual(error.class, expected, error.message)
        assert.strictEqual(yield* bench.paidSubmits(order), paid)
        if (fault === "429-wait") assert.strictEqual(error.retryAfterMillis, bench.wait)
        if (fault === "429") assert.isUndefined(error.retryAfterMillis)
      })
    )
  }

  const endings: ReadonlyArray<readonly [Ending, ReadonlyArray<VendorErrorClass>, string]> = [
    ["nothing", ["FAILED", "CONTENT"], "a success without any result fails"],
    ["failed", ["FAILED"], "a job that failed upstream is FAILED"],
    ["content", ["CONTENT"], "a job that failed for its content is CONTENT"],
    ["lost", ["LOST"], "a job that the vendor no longer knows is LOST"]
  ]
  for (const [ending, kinds, what] of endings) {
    if (!known.endings.includes(ending)) continue
    it.effect(`${what}, and is not polled again`, () =>
      Effect.gen(function* () {
        const bench = make()
        const error = yield* Effect.flip(run(bench, bench.order({ ending })))
        assert.include(kinds, error.class, error.message)
        if (bench.polls === undefined) return
        // The first poll of a known job shows that it runs
        const untilEnd = ending === "lost" ? 1 : 2
        assert.strictEqual(bench.polls(), known.isBlocking ? 0 : untilEnd)
      })
    )
  }

  if (known.endings.includes("partial")) {
    it.effect("returns the existing results of a partial failure", () =>
      Effect.gen(function* () {
        const bench = make()
        const items = yield* run(bench, bench.order({ ending: "partial" }))
        assert.strictEqual(items.length, bench.count - 1)
      })
    )
  }

  if (known.isBlocking) return

  it.effect("a handle of another vendor is LOST", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip((yield* make().connect).poll({ other: 1 }))
      assert.strictEqual(error.class, "LOST")
    })
  )

  it.effect(known.canCancel ? "a waiting job can be cancelled" : "a job cannot be cancelled", () =>
    Effect.gen(function* () {
      const bench = make()
      const account = yield* bench.connect
      const submitted = yield* account.submit(bench.order())
      assert(submitted._tag === "Accepted")
      const outcome = yield* account.cancel(throughJson(submitted.handle))
      assert.strictEqual(outcome, bench.canCancel ? "Canceled" : "Unsupported")
    })
  )
}

/** Every fault and ending of an upstream that follows its documented formats. */
const allFaults = submitFaults.map(([fault]) => fault)

/** The timeout of each request, in seconds: docs/reference/vendors.md#dashscope-sources */
const blockingSeconds = 300
const createSeconds = 60
const askSeconds = 30

for (const subject of subjects) {
  describe(`vendor family ${subject.adapter}`, () => {
    let upstream: Upstream
    beforeAll(async () => {
      upstream = await Upstream.start(subject.protocol)
    })
    beforeEach(() => upstream.reset())
    afterAll(() => upstream.close())

    const accountOf = (base: string, key: string) =>
      accountAt(subject.described ?? (subject.adapter as AdapterName), base, key)
    const connect = Effect.suspend(() => accountOf(`${upstream.url}${subject.base}`, upstream.key))

    const bench: Bench = {
      count: subject.count,
      canCancel: subject.canCancel === true,
      isBlocking: subject.isBlocking,
      connect,
      order: ({ ending = "done", fault } = {}) => {
        upstream.ending = ending
        upstream.submitFaults = fault === undefined ? [] : [fault]
        return subject.request
      },
      faults: allFaults,
      endings: [
        ...(subject.adapter === "openai-video" ? [] : (["nothing"] as const)),
        ...(subject.count > 1 ? (["partial"] as const) : []),
        ...(subject.isBlocking ? [] : (["failed", "content"] as const)),
        // DashScope tolerates an unknown job for a while: test/vendors/contract/adapterFaults.test.ts
        ...(subject.isBlocking || subject.adapter === "dashscope-async" ? [] : (["lost"] as const))
      ],
      ...(subject.media === undefined ? {} : { media: subject.media }),
      wait: 7000,
      paidSubmits: () => Effect.sync(() => upstream.paidSubmits),
      // A GET of fal's result follows the poll that shows its end
      polls: () =>
        upstream.seen.filter(
          ({ method, path }) => method === "GET" && !/\/requests\/[^/]+$/u.test(path)
        ).length
    }
    contract(() => bench)

    it.effect("no failure quotes the key", () =>
      Effect.gen(function* () {
        const account = yield* connect
        for (const fault of allFaults) {
          const error = yield* Effect.flip(account.submit(bench.order({ fault })))
          assert.notInclude(JSON.stringify(error), upstream.key)
        }
      })
    )

    it.effect("a refused connection is RETRYABLE, because no byte was sent", () =>
      Effect.gen(function* () {
        const account = yield* accountOf("http://127.0.0.1:9", upstream.key)
        const error = yield* Effect.flip(account.submit(subject.request))
        assert.strictEqual(error.class, "RETRYABLE", error.message)
      })
    )

    it.effect("a wrong key is OPERATOR", () =>
      Effect.gen(function* () {
        const base = `${upstream.url}${subject.base}`
        const account = yield* accountOf(base, "wrong-key")
        const error = yield* Effect.flip(account.submit(subject.request))
        assert.strictEqual(error.class, "OPERATOR", error.message)
      })
    )

    /** The state of a submit whose request arrived, in the last second of the timeout and after it. */
    const afterSeconds = Effect.fnUntraced(function* <A, R>(
      seconds: number,
      work: Effect.Effect<A, VendorError, R>
    ) {
      const before = upstream.requests
      const fiber = yield* Effect.forkChild(Effect.flip(work))
      yield* moment.pipe(Effect.repeat({ until: () => upstream.requests > before }))
      // The beginning of the response, if there is one, is on its way
      for (let round = 0; round < 5; round += 1) yield* moment
      yield* TestClock.adjust(Duration.seconds(seconds - 1))
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      return yield* Fiber.join(fiber)
    })

    for (const fault of ["hang", "stall"] as const) {
      const seconds = subject.isBlocking ? blockingSeconds : createSeconds
      it.effect(`a submit with a ${fault} is AMBIGUOUS after ${seconds} seconds`, () =>
        Effect.gen(function* () {
          const account = yield* connect
          const order = bench.order({ fault })
          const error = yield* afterSeconds(seconds, account.submit(order))
          assert.strictEqual(error.class, "AMBIGUOUS", error.message)
          assert.strictEqual(upstream.paidSubmits, fault === "stall" ? 1 : 0)
        })
      )
    }

    if (subject.isBlocking) return

    const pollFaults: ReadonlyArray<readonly [Fault, VendorErrorClass]> = [
      ["drop-before", "RETRYABLE"],
      // An intermediary's response says nothing about the job, which runs and is paid for
      ["edge-403", "RETRYABLE"],
      ["edge-502", "RETRYABLE"],
      ["edge-504", "RETRYABLE"],
      ["unavailable", "RETRYABLE"],
      ["garbage", "RETRYABLE"],
      ["429-wait", "RATE_LIMITED"]
    ]
    for (const [fault, kind] of pollFaults) {
      it.effect(`a poll with the fault ${fault} is ${kind}, and the next poll continues`, () =>
        Effect.gen(function* () {
          const account = yield* connect
          const submitted = yield* account.submit(bench.order())
          assert(submitted._tag === "Accepted")
          upstream.askFaults = [fault]
          const error = yield* Effect.flip(account.poll(submitted.handle))
          assert.strictEqual(error.class, kind, error.message)
          assert.strictEqual((yield* finish(bench, submitted.handle)).length, subject.count)
        })
      )
    }

    it.effect(
      "a poll that is refused because of the account has the refusal's status, and the job continues",
      () =>
        Effect.gen(function* () {
          const account = yield* connect
          const submitted = yield* account.submit(bench.order())
          assert(submitted._tag === "Accepted")
          upstream.askFaults = ["operator"]
          const error = yield* Effect.flip(account.poll(submitted.handle))
          assert.strictEqual(error.class, "OPERATOR", error.message)
          assert.isAtLeast(error.httpStatus ?? 0, 400)
          assert.strictEqual((yield* finish(bench, submitted.handle)).length, subject.count)
        })
    )

    for (const fault of ["hang", "stall"] as const) {
      it.effect(`a poll with a ${fault} is RETRYABLE after ${askSeconds} seconds`, () =>
        Effect.gen(function* () {
          const account = yield* connect
          const submitted = yield* account.submit(bench.order())
          assert(submitted._tag === "Accepted")
          upstream.askFaults = [fault]
          const error = yield* afterSeconds(askSeconds, account.poll(submitted.handle))
          assert.strictEqual(error.class, "RETRYABLE", error.message)
          assert.strictEqual((yield* finish(bench, submitted.handle)).length, subject.count)
        })
      )

      it.effect(`a download with a ${fault} is RETRYABLE after ${askSeconds} seconds`, () =>
        Effect.gen(function* () {
          const account = yield* connect
          const [item] = yield* run(bench, bench.order())
          assert(item?._tag === "Url" && account.download !== undefined)
          if (fault === "hang") upstream.askFaults = upstream.resultFaults = ["hang"]
          else upstream.media = { head: pixel, size: 1000, breaks: [pixel.length], isHanging: true }
          const { download } = account
          const reading = Effect.scoped(
            Effect.flatMap(download(item), (found) =>
              Stream.runDrain(Option.getOrThrow(found).stream)
            )
          )
          const error = yield* afterSeconds(askSeconds, reading)
          assert.strictEqual(error.class, "RETRYABLE", error.message)
        })
      )
    }

    if (subject.canCancel !== true) return

    it.effect("a cancel is sent to the vendor once, and changes nothing if it fails", () =>
      Effect.gen(function* () {
        const account = yield* connect
        const submitted = yield* account.submit(bench.order())
        assert(submitted._tag === "Accepted")
        upstream.cancelFaults = ["unavailable"]
        const error = yield* Effect.flip(account.cancel(submitted.handle))
        assert.strictEqual(error.class, "RETRYABLE", error.message)
        assert.strictEqual(upstream.cancels, 1)
        assert.strictEqual((yield* finish(bench, submitted.handle)).length, subject.count)
        assert.strictEqual(upstream.paidSubmits, 1)
      })
    )
  })
}

/** Real time in which a socket delivers what was sent. */
const moment = Effect.promise(() => pause(2))

describe("the simulator", () => {
  /** The directives of a prompt that produce each fault (`docs` of Script.ts). */
  const faults: Partial<Record<Fault, string>> = {
    "429-wait": "[[sim:429=1]]",
    unavailable: "[[sim:503=1]]",
    "drop-after": "[[sim:lost-submit]]",
    operator: "[[sim:operator]]",
    content: "[[sim:refuse]]",
    client: "[[sim:no-such-directive]]",
    media: "[[sim:media]]"
  }
  const endings: Partial<Record<Ending, string>> = {
    done: "",
    partial: "[[sim:partial=1]]",
    nothing: "[[sim:partial=0]]",
    failed: "[[sim:fail]]",
    lost: "[[sim:lost]]"
  }
  let orders = 0
  contract(() => {
    const simulator = Effect.runSync(
      makeSimulator({ delay: { min: "1 second", max: "2 seconds" } })
    )
    return {
      count: 2,
      canCancel: true,
      isBlocking: false,
      connect: Effect.succeed(simulator.account),
      order: ({ ending = "done", fault } = {}) => {
        orders += 1
        const directive = fault === undefined ? endings[ending] : faults[fault]
        return {
          ...request("text-to-image-preview", "m", {
            prompt: `p ${directive ?? ""}`,
            n: 2,
            size: "512*512"
          }),
          taskId: `task-${orders}`
        }
      },
      faults: Struct.keys(faults),
      endings: Struct.keys(endings),
      wait: 1000,
      paidSubmits: ({ taskId }) => simulator.paidSubmits(taskId)
    } satisfies Bench
  })
})
