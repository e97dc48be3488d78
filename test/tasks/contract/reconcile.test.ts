import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import { Reconcile } from "../../../src/tasks/submission/Reconcile.ts"
import type { UnrecordedSubmit } from "../../../src/tasks/submission/Reconcile.ts"
import { VendorAttemptStore } from "../../../src/tasks/submission/VendorAttemptStore.ts"
import type { ConcurrentAttempts } from "../../../src/tasks/submission/VendorAttemptStore.ts"
import type { Candidate, Progress, SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { accountAt, request } from "../../support/upstreams/accounts.ts"
import { dashscope } from "../../support/upstreams/dashscope.ts"
import { openai } from "../../support/upstreams/openai.ts"
import { replicate } from "../../support/upstreams/replicate.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import type { Protocol } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#reconciliation, ADR 0081: finds the job of a submit whose response was lost, where the vendor can list. */

interface Lister {
  readonly adapter: AdapterName
  readonly protocol: Protocol
  readonly base: string
  readonly order: (prompt: string) => SubmitRequest
  /** The list shows the prompt. */
  readonly tellsPrompt: boolean
}

const listers: ReadonlyArray<Lister> = [
  {
    adapter: "dashscope-async",
    protocol: dashscope,
    base: "/api/v1",
    order: (prompt) =>
      request("text-to-image-preview", "wan2.5-t2i-preview", { prompt, size: "1280*1280" }),
    tellsPrompt: false
  },
  {
    adapter: "openai-video",
    protocol: openai,
    base: "/v1",
    order: (prompt) => request("text-to-video-spark", "sora-2", { prompt, size: "1280*720" }),
    tellsPrompt: true
  },
  {
    adapter: "replicate",
    protocol: replicate,
    base: "/v1",
    order: (prompt) =>
      request("text-to-image-preview", "black-forest-labs/flux-schnell", { prompt, n: 1 }),
    tellsPrompt: true
  },
  {
    adapter: "replicate",
    protocol: replicate,
    base: "/v1",
    order: (prompt) => request("text-to-image-preview", "deployments/acme/pictures", { prompt }),
    tellsPrompt: true
  }
]

const hour = 3_600_000

for (const { adapter, base, order, protocol, tellsPrompt } of listers) {
  describe(`the list of ${adapter}`, () => {
    let upstream: Upstream
    beforeAll(async () => {
      upstream = await Upstream.start(protocol)
    })
    beforeEach(() => upstream.reset())
    afterAll(() => upstream.close())

    const connect = Effect.suspend(() => accountAt(adapter, `${upstream.url}${base}`, upstream.key))
    /** Submits, and sets the time of the submit at the vendor; returns the job's id. */
    const submitAt = Effect.fnUntraced(function* (prompt: string, at: number) {
      yield* (yield* connect).submit(order(prompt))
      const job = [...upstream.jobs.values()].at(-1)!
      job.createdAt = at
      return job.id
    })
    const ids = (candidates: ReadonlyArray<Candidate>) => candidates.map(({ jobId }) => jobId)

    it.effect("shows the job of that time on any page, and the handle gives its result", () =>
      Effect.gen(function* () {
        const now = Date.now()
        yield* submitAt("mine", now - hour)
        const mine = yield* submitAt("mine", now)
        yield* submitAt("mine", now + hour / 2)
        yield* submitAt("mine", now + hour / 2)
        yield* submitAt("mine", now + hour / 2)
        upstream.pageSize = 2
        const account = yield* connect
        const found = yield* account.reconcile(order("mine"), now)
        assert.deepStrictEqual(ids(found), [mine])
        assert.isTrue(account.canList)
        for (;;) {
          const progress: Progress = yield* account.poll(found[0]!.handle)
          if (progress._tag === "Done") return assert.strictEqual(progress.result.items.length, 1)
        }
      })
    )

    it.effect("shows all jobs that match", () =>
      Effect.gen(function* () {
        const now = Date.now()
        const jobs = [
          yield* submitAt("mine", now),
          yield* submitAt("another's", now),
          yield* submitAt("mine", now)
        ]
        upstream.pageSize = 1
        const found = yield* (yield* connect).reconcile(order("mine"), now)
        const expected = tellsPrompt ? [jobs[0], jobs[2]] : jobs
        assert.sameMembers(ids(found), expected as Array<string>)
      })
    )

    it.effect("shows none when the submit was never received, and no job of another model", () =>
      Effect.gen(function* () {
        const now = Date.now()
        yield* submitAt("mine", now - hour)
        const account = yield* connect
        assert.deepStrictEqual(yield* account.reconcile(order("mine"), now), [])
        yield* submitAt("mine", now)
        const other = { ...order("mine"), upstreamModel: "some/other-model" }
        assert.deepStrictEqual(yield* account.reconcile(other, now), [])
      })
    )
  })
}

describe("which task a job belongs to", () => {
  const none: ConcurrentAttempts = { handleValues: new Set(), unresolved: 0 }
  const job = (jobId: string): Candidate => ({ jobId, handle: { id: jobId } })

  /** Reconciles with these lists, one after the other; returns the result and its seconds. */
  const found = (
    lists: ReadonlyArray<ReadonlyArray<Candidate> | VendorError>,
    others = none,
    canList = true
  ) =>
    Effect.gen(function* () {
      let looks = 0
      const account = {
        accountId: "a",
        canList,
        reconcile: () =>
          Effect.suspend(() => {
            const list = lists[Math.min(looks, lists.length - 1)]!
            looks += 1
            return list instanceof VendorError ? Effect.fail(list) : Effect.succeed(list)
          })
      }
      const unrecorded = {
        account,
        owned: { task: { id: "0190a1b2-0000-7000-8000-000000000001" } },
        startedAt: yield* DateTime.now,
        request: {}
      } as unknown as UnrecordedSubmit
      const { find } = yield* Reconcile
      const looking = Effect.result(find(unrecorded)).pipe(
        Effect.flatMap((result) =>
          Effect.map(Clock.currentTimeMillis, (now) => ({ result, seconds: now / 1000 }))
        )
      )
      const fiber = yield* Effect.forkChild(looking)
      yield* TestClock.adjust("1 minute")
      const { seconds, result } = yield* Fiber.join(fiber)
      const what = result._tag === "Success" ? result.success["id"] : result.failure.class
      return { what, seconds, looks }
    }).pipe(
      Effect.provide(
        Reconcile.layer.pipe(
          Layer.provide(
            Layer.succeed(VendorAttemptStore, { concurrent: () => Effect.succeed(others) })
          )
        )
      )
    )

  const slow = new VendorError({ class: "RETRYABLE", message: "busy" })
  const cases: ReadonlyArray<
    readonly [string, ReturnType<typeof found>, string, seconds: number, looks: number]
  > = [
    ["the only one is it", found([[job("j")]]), "j", 0, 1],
    ["one that the list shows late is it", found([[], [job("j")]]), "j", 5, 2],
    [
      "a list that is unavailable for a moment is requested again",
      found([slow, [job("j")]]),
      "j",
      5,
      2
    ],
    ["none after three lists, 5 seconds apart: ambiguous", found([[]]), "AMBIGUOUS", 10, 3],
    ["two alike: ambiguous", found([[job("j"), job("k")]]), "AMBIGUOUS", 10, 3],
    [
      "one of two belongs to another task: the other is it",
      found([[job("j"), job("k")]], { handleValues: new Set(["k"]), unresolved: 0 }),
      "j",
      0,
      1
    ],
    [
      "the only one belongs to another task: ambiguous",
      found([[job("j")]], { handleValues: new Set(["j"]), unresolved: 0 }),
      "AMBIGUOUS",
      10,
      3
    ],
    [
      "another submit of that time is not settled: ambiguous",
      found([[job("j")]], { handleValues: new Set(), unresolved: 1 }),
      "AMBIGUOUS",
      10,
      3
    ],
    ["a vendor that cannot list is not asked", found([[job("j")]], none, false), "AMBIGUOUS", 0, 0]
  ]
  for (const [what, looking, expected, seconds, looks] of cases) {
    it.effect(what, () =>
      Effect.gen(function* () {
        const result = yield* looking
        assert.deepStrictEqual(result, { what: expected, seconds, looks })
      })
    )
  }
})
