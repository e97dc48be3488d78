import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import type { ListedJob, Progress, SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import { accountAt, jobsLike, request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import type { Protocol } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#reconciliation, ADR 0194: what the lists of the vendors show. */

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
    /** Submits and sets the time of the submit at the vendor. Returns the job's id. */
    const submitAt = Effect.fnUntraced(function* (prompt: string, at: number) {
      yield* (yield* connect).submit(order(prompt))
      const job = [...upstream.jobs.values()].at(-1)!
      job.createdAt = at
      return job.id
    })
    const ids = (jobs: ReadonlyArray<ListedJob>) => jobs.map(({ jobId }) => jobId)

    it.effect("shows the job of the given time on any page, and its handle gives the result", () =>
      Effect.gen(function* () {
        const now = Date.now()
        yield* submitAt("mine", now - hour)
        const mine = yield* submitAt("mine", now)
        yield* submitAt("mine", now + hour / 2)
        yield* submitAt("mine", now + hour / 2)
        yield* submitAt("mine", now + hour / 2)
        upstream.pageSize = 2
        const account = yield* connect
        const found = yield* jobsLike(account, order("mine"), now)
        assert.deepStrictEqual(ids(found), [mine])
        for (;;) {
          const progress: Progress = yield* account.poll(found[0]!.handle(order("mine")))
          if (progress._tag === "Done") return assert.strictEqual(progress.result.items.length, 1)
        }
      })
    )

    it.effect("shows all jobs that match", () =>
      Effect.gen(function* () {
        const now = Date.now()
        // Shown unchanged
        const mine = "mine:\nin two lines"
        const jobs = [
          yield* submitAt(mine, now),
          yield* submitAt("another's", now),
          yield* submitAt(mine, now)
        ]
        upstream.pageSize = 1
        const found = yield* jobsLike(yield* connect, order(mine), now)
        const expected = tellsPrompt ? [jobs[0], jobs[2]] : jobs
        assert.sameMembers(ids(found), expected as Array<string>)
      })
    )

    it.effect("shows no job if the submit was never received, and none of another model", () =>
      Effect.gen(function* () {
        const now = Date.now()
        yield* submitAt("mine", now - hour)
        const account = yield* connect
        assert.deepStrictEqual(yield* jobsLike(account, order("mine"), now), [])
        yield* submitAt("mine", now)
        const other = { ...order("mine"), upstreamModel: "some/other-model" }
        assert.deepStrictEqual(yield* jobsLike(account, other, now), [])
      })
    )

    it.effect("shows the request of a job, or the job's own record does", () =>
      Effect.gen(function* () {
        upstream.runningPolls = 0
        const now = Date.now()
        const mine = yield* submitAt("mine", now)
        yield* submitAt("another's", now)
        const jobs = yield* jobsLike(yield* connect, order("mine"), now)
        const likenesses = yield* Effect.forEach(jobs, (job) =>
          Effect.map(job.read ?? Effect.succeed(job), (it) => [
            it.jobId === mine,
            it.compare(order("mine")),
            it.read
          ])
        )
        const shown = likenesses.filter(([, likeness]) => likeness !== "other")
        assert.deepStrictEqual(shown, [[true, "same", undefined]])
        assert.strictEqual(jobs.length, tellsPrompt ? 1 : 2)
      })
    )
  })
}

describe("a list with more pages than are read", () => {
  it.effect("fails, because an unread page may show another job that matches", () =>
    Effect.gen(function* () {
      const upstream = yield* Effect.acquireRelease(
        Effect.promise(() => Upstream.start(replicate)),
        (it) => Effect.promise(() => it.close())
      )
      const account = yield* accountAt("replicate", `${upstream.url}/v1`, upstream.key)
      const order = request("text-to-image-preview", "black-forest-labs/flux-schnell", {
        prompt: "p"
      })
      for (let n = 0; n < 21; n += 1) yield* account.submit(order)
      upstream.pageSize = 1
      const result = yield* Effect.result(jobsLike(account, order, Date.now()))
      assert.strictEqual(result._tag === "Failure" ? result.failure.class : "listed", "RETRYABLE")
      upstream.pageSize = 2
      assert.strictEqual((yield* jobsLike(account, order, Date.now())).length, 21)
    })
  )
})
