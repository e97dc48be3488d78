import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import type { SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import type { VendorErrorClass } from "../../../src/vendors/VendorError.ts"
import type { VendorHttp } from "../../../src/vendors/VendorHttp.ts"
import { accountAt, picture, request } from "../../support/upstreams/accounts.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#error-classes: responses of fal, Replicate and OpenAI's videos that few jobs meet. */

interface Reply {
  readonly status?: number
  /** JSON, or text of an intermediary. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** An account whose vendor gives these responses, in order, and the URLs that were requested. */
const replying = (adapter: AdapterName, replies: ReadonlyArray<Reply>) => {
  const urls: Array<string> = []
  const http: VendorHttp = ({ url }) =>
    Effect.sync(() => {
      const { body = {}, headers = {}, status = 200 } = replies[urls.length] ?? {}
      urls.push(url)
      const text = typeof body === "string" ? body : JSON.stringify(body)
      return { status, headers, body: Buffer.from(text) }
    })
  const base = adapter === "fal-queue" ? "https://vendor.example" : "https://vendor.example/v1"
  return Effect.map(accountAt(adapter, base, "key", { http }), (account) => ({ account, urls }))
}

const order = (upstreamModel: string, more: Partial<SubmitRequest> = {}) =>
  request("text-to-image-preview", upstreamModel, { prompt: "p" }, more)

const orders = {
  "fal-queue": order("fal-ai/flux/dev"),
  replicate: order("acme/paint"),
  "openai-video": order("sora-2")
} as const
type Name = keyof typeof orders

const detail = (status: number, text: string, code?: string): Reply => ({
  status,
  body: { detail: text },
  ...(code === undefined ? {} : { headers: { "x-fal-error-type": code } })
})
const typed = (status: number, type: string): Reply => ({
  status,
  body: { detail: [{ type, msg: "said so", loc: ["body"] }] }
})
const open = (status: number, type: string, code: string | null = null): Reply => ({
  status,
  body: { error: { type, code, message: "said so", param: null } }
})
const page = (status: number, headers: Record<string, string> = {}): Reply => ({
  status,
  body: "<html>",
  headers
})

const submits: ReadonlyArray<readonly [Name, string, Reply, VendorErrorClass]> = [
  ...[400, 405, 408, 409, 413, 415, 451].map(
    (status) => ["fal-queue", `${status}`, detail(status, "no"), "FATAL_CLIENT"] as const
  ),
  ["fal-queue", "422 without an item", { status: 422, body: { detail: [] } }, "FATAL_CLIENT"],
  ["fal-queue", "422 of a time-out", typed(422, "generation_timeout"), "RETRYABLE"],
  ["fal-queue", "200 with an error", typed(200, "internal_server_error"), "AMBIGUOUS"],
  ["fal-queue", "202 without an id", detail(202, "exhausted balance"), "AMBIGUOUS"],
  ["replicate", "409 of a time-out", detail(409, "Prediction timed out"), "RETRYABLE"],
  ["replicate", "500 of a time-out", detail(500, "Prediction interrupted"), "RETRYABLE"],
  ["replicate", "201 with an error", detail(201, "Prediction interrupted"), "AMBIGUOUS"],
  ["replicate", "409", detail(409, "no"), "FATAL_CLIENT"],
  ["openai-video", "403 of a request", open(403, "invalid_request_error"), "FATAL_CLIENT"],
  ["openai-video", "500 of a request", open(500, "invalid_request_error"), "FATAL_CLIENT"],
  ["openai-video", "401 of a key", open(401, "invalid_request_error"), "OPERATOR"],
  ["openai-video", "429 of a server", open(429, "x", "server_error"), "RETRYABLE"],
  ["openai-video", "200 with an error", open(200, "server_error", "server_error"), "AMBIGUOUS"],
  ...(["fal-queue", "replicate", "openai-video"] as const).flatMap((name) =>
    (
      [
        [302, "AMBIGUOUS"],
        [400, "FATAL_CLIENT"],
        [403, "OPERATOR"],
        [502, "AMBIGUOUS"],
        [503, "RETRYABLE"]
      ] as const
    ).map(([status, kind]) => [name, `${status} of an intermediary`, page(status), kind] as const)
  )
]

describe("a failed submit", () => {
  for (const [name, what, reply, kind] of submits) {
    it.effect(`${name}: ${what} is ${kind}`, () =>
      Effect.gen(function* () {
        const { account } = yield* replying(name, [reply])
        const error = yield* Effect.flip(account.submit(orders[name]))
        assert.strictEqual(error.class, kind, error.message)
      })
    )
  }

  it.effect("waits as long as an intermediary's 429 says", () =>
    Effect.gen(function* () {
      for (const name of ["fal-queue", "replicate", "openai-video"] as const) {
        const { account } = yield* replying(name, [page(429, { "retry-after": "7" })])
        const error = yield* Effect.flip(account.submit(orders[name]))
        assert.deepInclude(error, { class: "RATE_LIMITED", retryAfterMillis: 7000 })
      }
    })
  )

  it.effect(
    "can be tried again if the address of an uploaded file is empty, because nothing was bought",
    () =>
      Effect.gen(function* () {
        const uploaded = { status: 201, body: { urls: { get: "" } } }
        const { account, urls } = yield* replying("replicate", [uploaded])
        const large = { ...picture("#/images/0"), size: 2 ** 21, bytes: Effect.succeed(pixel) }
        const given = request("image-edit", "acme/paint", { images: ["a"] }, { media: [large] })
        assert.strictEqual((yield* Effect.flip(account.submit(given))).class, "RETRYABLE")
        assert.deepStrictEqual(urls, ["https://vendor.example/v1/files"])
      })
  )
})

const falJob = {
  id: "r",
  model: "fal-ai/flux/dev",
  submittedAtMillis: 0,
  result: "images",
  statusUrl: "https://vendor.example/s",
  responseUrl: "https://vendor.example/r",
  cancelUrl: "https://vendor.example/c"
}

describe("fal's response to the request for a result", () => {
  const completed = { body: { status: "COMPLETED" } }
  const rows: ReadonlyArray<readonly [string, Reply, VendorErrorClass]> = [
    ...[400, 402, 404, 405, 409, 413, 415, 500, 503].map(
      (status) => [`${status}`, detail(status, "no"), "FAILED"] as const
    ),
    ["503 of a runner", detail(503, "no", "runner_disconnected"), "FAILED"],
    ["504 of a time-out", detail(504, "no", "generation_timeout"), "TIMEOUT"],
    ["503 of a time-out", detail(503, "no", "startup_timeout"), "TIMEOUT"],
    ["422 of its content", typed(422, "content_policy_violation"), "CONTENT"],
    ["422", typed(422, "missing"), "FATAL_CLIENT"],
    ["401", detail(401, "no"), "OPERATOR"],
    ["429", detail(429, "no"), "RATE_LIMITED"],
    ["503 of an intermediary", page(503), "RETRYABLE"],
    ["202", { status: 202, body: { status: "IN_PROGRESS" } }, "RETRYABLE"]
  ]
  for (const [what, reply, kind] of rows) {
    it.effect(`${what} is ${kind}`, () =>
      Effect.gen(function* () {
        const { account } = yield* replying("fal-queue", [completed, reply])
        const error = yield* Effect.flip(account.poll(falJob))
        assert.strictEqual(error.class, kind, error.message)
      })
    )
  }

  it.effect("flags files, but not the members of a document", () =>
    Effect.gen(function* () {
      const json = { has_nsfw_concepts: true, label: "cat" }
      const { account } = yield* replying("fal-queue", [completed, { body: json }])
      const done = yield* account.poll({ ...falJob, result: "documents" })
      assert(done._tag === "Done" && done.result.items[0]?._tag === "Bytes")
      assert.deepStrictEqual(JSON.parse(Buffer.from(done.result.items[0].bytes).toString()), json)
    })
  )

  it.effect("is not requested while the job runs, even if an earlier run had an error", () =>
    Effect.gen(function* () {
      const body = { status: "IN_PROGRESS", error: "The runner was restarted" }
      const { account, urls } = yield* replying("fal-queue", [{ body }])
      assert.strictEqual((yield* account.poll(falJob))._tag, "Running")
      assert.lengthOf(urls, 1)
    })
  )
})

describe("a poll", () => {
  it.effect("is repeated after a time-out and does not end a paid job", () =>
    Effect.gen(function* () {
      const replicateJob = {
        id: "p",
        model: "acme/paint",
        submittedAtMillis: 0,
        getUrl: "https://vendor.example/p",
        cancelUrl: "https://vendor.example/c"
      }
      for (const [name, job, reply] of [
        ["fal-queue", falJob, detail(504, "late", "request_timeout")],
        ["replicate", replicateJob, detail(504, "Prediction timed out")]
      ] as const) {
        const { account } = yield* replying(name, [reply])
        assert.strictEqual((yield* Effect.flip(account.poll(job))).class, "RETRYABLE")
      }
      const ended = { id: "p", status: "failed", error: "Prediction timed out" }
      const { account } = yield* replying("replicate", [{ body: ended }])
      assert.strictEqual((yield* Effect.flip(account.poll(replicateJob))).class, "TIMEOUT")
    })
  )

  it.effect("does not read a document of Replicate as a file if it is an address", () =>
    Effect.gen(function* () {
      const output = ["https://a.example/page"]
      const { account } = yield* replying("replicate", [{ body: { status: "succeeded", output } }])
      const job = {
        id: "p",
        model: "acme/read",
        submittedAtMillis: 0,
        result: "documents",
        getUrl: "https://vendor.example/p",
        cancelUrl: "https://vendor.example/c"
      }
      const done = yield* account.poll(job)
      assert(done._tag === "Done" && done.result.items[0]?._tag === "Bytes")
      assert.deepStrictEqual(JSON.parse(Buffer.from(done.result.items[0].bytes).toString()), output)
    })
  )

  it.effect("of a video that is refused with 401, 403 or 429 is repeated", () =>
    Effect.gen(function* () {
      const job = { id: "v", model: "sora-2", submittedAtMillis: 0 }
      for (const [status, kind] of [
        [401, "OPERATOR"],
        [403, "OPERATOR"],
        [429, "RATE_LIMITED"],
        [400, "LOST"]
      ] as const) {
        const refused = [open(status, "invalid_request_error")]
        const { account } = yield* replying("openai-video", refused)
        assert.strictEqual((yield* Effect.flip(account.poll(job))).class, kind)
      }
      const error = { code: "invalid_value", message: "m" }
      const { account } = yield* replying("openai-video", [{ body: { status: "failed", error } }])
      assert.strictEqual((yield* Effect.flip(account.poll(job))).class, "FATAL_CLIENT")
    })
  )
})

describe("a job that ended without a message", () => {
  for (const [adapter, state] of [
    ["replicate", "canceled"],
    ["replicate", "failed"],
    ["openai-video", "cancelled"]
  ] as const) {
    it.effect(`names its state: ${adapter}, ${state}`, () =>
      Effect.gen(function* () {
        const { account } = yield* replying(adapter, [
          { status: 201, body: { id: "j", status: "queued", model: "m", created_at: 1 } },
          { body: { id: "j", status: state, error: null, model: "m" } }
        ])
        const submitted = yield* account.submit(orders[adapter])
        assert(submitted._tag === "Accepted")
        const error = yield* Effect.flip(account.poll(submitted.handle))
        assert.deepStrictEqual(
          [error.class, error.message],
          ["FAILED", `The job ended upstream in the state "${state}"`]
        )
      })
    )
  }
})

describe("a list", () => {
  const at = 1_700_000_000
  const query = { requests: [], from: at * 1000, until: (at + 60) * 1000 }
  const videos = (ids: ReadonlyArray<string>, more: boolean): Reply => ({
    body: { data: ids.map((id) => ({ id, created_at: at + 1 })), has_more: more }
  })

  it.effect("of videos continues after the last video while there are more", () =>
    Effect.gen(function* () {
      const pages = [videos(["b", "a"], true), videos(["0"], false), videos(["9"], false)]
      const { account, urls } = yield* replying("openai-video", pages)
      const found = yield* account.list!(query)
      assert.deepStrictEqual(
        found.map(({ jobId }) => jobId),
        ["b", "a", "0"]
      )
      assert.lengthOf(urls, 2)
      assert.match(urls[1]!, /&after=a$/u)
    })
  )

  it.effect("is requested again if it cannot be read", () =>
    Effect.gen(function* () {
      for (const name of ["replicate", "openai-video"] as const) {
        const { account } = yield* replying(name, [{ body: { message: "maintenance" } }])
        assert.strictEqual((yield* Effect.flip(account.list!(query))).class, "RETRYABLE")
      }
    })
  )

  it.effect("reads a request once to compare it with any number of jobs", () =>
    Effect.gen(function* () {
      const { account } = yield* replying("openai-video", [videos(["b", "a"], false)])
      const found = yield* account.list!(query)
      let reads = 0
      const given = {
        ...order("sora-2"),
        get body() {
          reads += 1
          return { prompt: "p" }
        }
      }
      found[0]!.compare(given)
      const first = reads
      assert.strictEqual(found[1]!.compare(given), "open")
      assert.strictEqual(reads, first)
    })
  )
})
