import { assert, describe, it } from "vitest"
import {
  ConflictError,
  ConnectionError,
  GatewayClient,
  InsufficientCreditsError,
  RateLimitError,
  ServerError,
  ValidationError
} from "../../../src/client/index.ts"
import { jumpingClock } from "../../support/clientClock.ts"

type Answer = () => Response | Promise<Response>

const problem =
  (status: number, code: number, headers: Record<string, string> = {}): Answer =>
  () =>
    Response.json(
      { type: `/docs/errors#${code}`, title: "Refused", status, detail: "", instance: "", code },
      { status, headers: { "content-type": "application/problem+json", ...headers } }
    )

const lost: Answer = () => Promise.reject(new TypeError("fetch failed"))

const silent: Answer = () => new Promise(() => {})

/** The body breaks off after a few bytes. */
const cut: Answer = () =>
  new Response(
    new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(`{"task_info":`))
        controller.error(new TypeError("terminated"))
      }
    }),
    { status: 202, headers: { "content-type": "application/json" } }
  )

const task = { id: "019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f", created_at: "x", updated_at: "x" }
const created: Answer = () => Response.json({ task_info: task }, { status: 202 })

/** A client whose requests get these responses, with the last one repeated. */
const scripted = (answers: ReadonlyArray<Answer>, options: { maxRetries?: number } = {}) => {
  const { clock, settle, sleeping } = jumpingClock()
  const sent: Array<{ method: string; headers: Headers; body: unknown; at: number }> = []
  const client = new GatewayClient({
    baseUrl: "http://gateway.test",
    apiKey: "sk-test",
    clock,
    // The longest delay
    random: () => 1,
    fetch: async (_, { body, headers, method = "" }) => {
      const answer = answers[sent.length] ?? answers.at(-1)!
      sent.push({ method, headers: new Headers(headers), body, at: clock.now() })
      return answer()
    },
    ...options
  })
  const create = (idempotencyKey?: string) =>
    client.tasks.create("text-to-image-max", { prompt: "A lighthouse" }, { idempotencyKey })
  const delays = () => sent.slice(1).map(({ at }, index) => at - sent[index]!.at)
  return { client, create, settle, sent, delays, sleeping }
}

const failureOf = async (settled: Promise<unknown>): Promise<unknown> =>
  settled.then(
    () => assert.fail("It should fail"),
    (error) => error
  )

describe("a request that fails", () => {
  it("is retried with the same key and bytes, at growing delays", async () => {
    const { create, delays, sent, settle, sleeping } = scripted([
      lost,
      cut,
      problem(503, 5003),
      problem(502, 5002),
      created
    ])
    const { id, idempotencyKey } = await settle(create())
    assert.strictEqual(id, task.id)
    assert.match(
      idempotencyKey,
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u
    )
    assert.deepStrictEqual(
      sent.map(({ headers }) => headers.get("idempotency-key")),
      Array.from({ length: 5 }, () => idempotencyKey)
    )
    assert.strictEqual(new Set(sent.map(({ body }) => body)).size, 1)
    assert.deepStrictEqual(delays(), [500, 1000, 2000, 4000])
    assert.strictEqual(sleeping(), 0, "no timer is left")
  })

  it("is not retried before Retry-After, given in seconds or as a date", async () => {
    const { create, delays, settle } = scripted([
      problem(429, 1201, { "retry-after": "7" }),
      problem(503, 5003, { "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }),
      created
    ])
    await settle(create())
    assert.deepStrictEqual(delays(), [7500, 30_000 - 7500 + 1000])
  })

  it("keeps its status and Retry-After if a proxy labels other text as JSON", async () => {
    const proxied =
      (status: number, text: string): Answer =>
      () =>
        new Response(text, {
          status,
          headers: { "content-type": "application/json", "retry-after": "7" }
        })
    const { create, delays, settle } = scripted([
      proxied(429, ""),
      proxied(503, "<p>Away</p>"),
      created
    ])
    await settle(create())
    assert.deepStrictEqual(delays(), [7500, 8000])
    const refused = scripted([proxied(413, "")])
    assert.instanceOf(await failureOf(refused.settle(refused.create())), ValidationError)
    assert.lengthOf(refused.sent, 1)
  })

  it("fails at once if Retry-After is longer than a minute", async () => {
    const { create, sent, settle } = scripted([problem(429, 1201, { "retry-after": "61" })])
    const error = await failureOf(settle(create()))
    assert.instanceOf(error, RateLimitError)
    assert.strictEqual((error as RateLimitError).retryAfter, 61)
    assert.lengthOf(sent, 1)
  })

  it("is not sent with a key that a header cannot contain", async () => {
    const { create, sent, settle } = scripted([created])
    assert.instanceOf(await failureOf(settle(create("order \u{1F4A1}"))), TypeError)
    assert.lengthOf(sent, 0)
  })

  it("fails after maxRetries with the key for another try", async () => {
    const { create, sent, settle } = scripted([lost], { maxRetries: 2 })
    const error = (await failureOf(settle(create("order-17")))) as ConnectionError
    assert.instanceOf(error, ConnectionError)
    assert.strictEqual(error.idempotencyKey, "order-17")
    assert.include(error.message, "gateway.test")
    assert.lengthOf(sent, 3)
  })

  it("counts as lost if there is no response in time", async () => {
    const { create, delays, settle } = scripted([silent, created])
    await settle(create())
    assert.deepStrictEqual(delays(), [60_000 + 500])
  })

  it("is not retried after a refusal", async () => {
    for (const [status, code] of [
      [400, 2001],
      [401, 1001],
      [402, 1101],
      [403, 1004],
      [404, 2006],
      [409, 2010],
      [422, 2008]
    ] as const) {
      const { create, sent, settle } = scripted([problem(status, code, { "retry-after": "1" })])
      await failureOf(settle(create()))
      assert.lengthOf(sent, 1, String(code))
    }
  })

  it("is not retried if the response forbids it", async () => {
    const { create, sent, settle } = scripted([problem(503, 5003, { "x-should-retry": "false" })])
    assert.instanceOf(await failureOf(settle(create())), ServerError)
    assert.lengthOf(sent, 1)
  })

  it("is retried while the first attempt is still being processed", async () => {
    const { create, sent, settle } = scripted([lost, problem(409, 2010), created])
    await settle(create())
    assert.lengthOf(sent, 3)
  })

  it("fails as lost, not as temporarily refused, if an earlier attempt may have succeeded", async () => {
    const { create, settle } = scripted([lost, problem(429, 1201)])
    const error = (await failureOf(settle(create()))) as ConnectionError
    assert.instanceOf(error, ConnectionError)
    assert.instanceOf(error.cause, RateLimitError)
  })

  it("fails with a final refusal even after a lost attempt", async () => {
    const { create, settle } = scripted([lost, problem(402, 1101)])
    assert.instanceOf(await failureOf(settle(create())), InsufficientCreditsError)
  })
})

describe("a POST whose route stores no idempotency keys", () => {
  it("is sent once, however it fails, with a key or without", async () => {
    for (const answer of [lost, cut, problem(429, 1201), problem(503, 5003), problem(500, 5000)]) {
      for (const idempotencyKey of [undefined, "mine"]) {
        const { client, sent, settle } = scripted([answer])
        const body = { model: "gpt", messages: [] }
        const options = { body, idempotencyKey }
        await failureOf(settle(client.request("POST /v1/chat/completions", options)))
        assert.lengthOf(sent, 1)
      }
    }
  })
})

describe("a DELETE whose response was lost", () => {
  it("has succeeded if the retry finds nothing", async () => {
    const { client, settle } = scripted([lost, problem(404, 2005)])
    assert.isUndefined(await settle(client.apiKeys.revoke("key_1")))
    const other = scripted([problem(404, 2005)])
    await failureOf(other.settle(other.client.apiKeys.revoke("key_1")))
  })

  it("has succeeded if the retry finds the task cancelled, by whichever request", async () => {
    const error = { code: 4004, title: "Cancelled", detail: "" }
    const ref = { id: task.id, vendor: "alibaba", model: "m", action: "generation" } as const
    const ended =
      (code: number): Answer =>
      () =>
        Response.json({ task_info: { ...task, status: "failed", error: { ...error, code } } })
    const { client, sent, settle } = scripted([lost, problem(409, 2010), ended(4004)])
    const { error: found } = await settle(client.tasks.cancel(ref))
    assert.strictEqual(found?.code, 4004)
    assert.deepStrictEqual(
      sent.map(({ method }) => method),
      ["DELETE", "DELETE", "GET"]
    )
    const other = scripted([problem(409, 2010), ended(3001)])
    assert.instanceOf(await failureOf(other.settle(other.client.tasks.cancel(ref))), ConflictError)
  })
})

describe("an aborted request", () => {
  it("rejects with the reason during and between attempts, and is not retried", async () => {
    for (const answer of [silent, problem(503, 5003, { "retry-after": "30" })]) {
      const { client, sent, settle, sleeping } = scripted([answer])
      const controller = new AbortController()
      const body = { prompt: "A lighthouse" }
      const options = { signal: controller.signal }
      const failure = failureOf(client.tasks.create("text-to-image-max", body, options))
      const reason = new Error("enough")
      setImmediate(() => setImmediate(() => setImmediate(() => controller.abort(reason))))
      for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate)
      assert.strictEqual(await settle(failure), reason)
      assert.lengthOf(sent, 1)
      assert.strictEqual(sleeping(), 0)
    }
  })

  it("is not sent if the signal has already aborted", async () => {
    const { client, sent, settle } = scripted([created])
    const signal = AbortSignal.abort("no")
    assert.strictEqual(await failureOf(settle(client.with({ signal }).wallet.get())), "no")
    assert.lengthOf(sent, 0)
  })
})
