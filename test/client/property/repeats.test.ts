import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  ConnectionError,
  GatewayClient,
  GatewayError,
  ServerError
} from "../../../src/client/index.ts"
import { retryDelay } from "../../../src/client/Retry.ts"
import { jumpingClock } from "../../support/clientClock.ts"

/** The outcome of an attempt, between the client and a gateway that stores idempotency keys. */
const step = fc.oneof(
  // The gateway executes it; the response arrives, is lost, or arrives incomplete
  fc.constantFrom("answered", "lostAnswer", "cutAnswer", "late504", "late500"),
  // It never arrives
  fc.constantFrom("unreached", "proxy502"),
  // It is refused, and nothing is done
  fc.record({
    status: fc.constantFrom(400, 402, 408, 409, 429, 503),
    retryAfter: fc.option(fc.integer({ min: 0, max: 90 }))
  })
)
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

const operations = {
  create: (client: GatewayClient) =>
    client.tasks.create("text-to-image-max", { prompt: "A lighthouse" }),
  manage: (client: GatewayClient) => client.apiKeys.create({ name: "a" }),
  call: (client: GatewayClient) =>
    client.request("POST /v1/chat/completions", { body: { model: "gpt" } })
}

const json = (body: unknown, status: number, headers: Record<string, string> = {}) =>
  Response.json(body, { status, headers })

const cut = () =>
  new Response(
    new ReadableStream({ start: (controller) => controller.error(new TypeError("terminated")) }),
    { status: 202, headers: { "content-type": "application/json" } }
  )

/** A gateway that executes a request once per key, as docs/reference/tasks.md#idempotency says. */
const gatewayOf = (steps: ReadonlyArray<Step>, now: () => number) => {
  const kept = new Set<string>()
  const sent: Array<{ at: number; key: string | null; retryAfter: number }> = []
  let done = 0
  const answer = () =>
    json({ task_info: { id: "t", created_at: "", updated_at: "" }, id: "key_1", key: "sk" }, 202)
  const take = (key: string | null): void => {
    if (key !== null && kept.has(key)) return
    done += 1
    if (key !== null) kept.add(key)
  }
  const fetch = async (_: string, { headers }: RequestInit): Promise<Response> => {
    const one = steps[sent.length] ?? "answered"
    const key = new Headers(headers).get("idempotency-key")
    const retryAfter = typeof one === "object" ? (one.retryAfter ?? 0) : 0
    sent.push({ at: now(), key, retryAfter })
    if (one === "unreached") throw new TypeError("fetch failed")
    if (one === "proxy502") return new Response("bad gateway", { status: 502 })
    if (typeof one === "object") {
      // A known key gets the first response; temporary refusals come before that
      if (one.status < 408 && key !== null && kept.has(key)) return answer()
      const headers: Record<string, string> =
        one.retryAfter === null ? {} : { "retry-after": String(one.retryAfter) }
      return json({ title: "Refused", code: 1, detail: "" }, one.status, headers)
    }
    take(key)
    if (one === "lostAnswer") throw new TypeError("fetch failed")
    if (one === "cutAnswer") return cut()
    if (one === "late504") return new Response("", { status: 504 })
    if (one === "late500") return json({ title: "Internal", code: 5000, detail: "" }, 500)
    return answer()
  }
  return { fetch, sent, done: () => done }
}

describe("the retries of a request", () => {
  it("execute it at most once, and not at all if the client reports a refusal", async () => {
    const kinds = fc.constantFrom("create", "manage", "call")
    await fc.assert(
      fc.asyncProperty(
        kinds,
        fc.array(step, { maxLength: 7 }),
        fc.integer({ min: 0, max: 5 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (kind: keyof typeof operations, steps, maxRetries, random) => {
          const { clock, settle } = jumpingClock()
          const { done, fetch, sent } = gatewayOf(steps, clock.now)
          const client = new GatewayClient({
            baseUrl: "http://gateway.test",
            apiKey: "sk-test",
            fetch,
            clock,
            maxRetries,
            random: () => random
          })
          const failure = await settle(
            operations[kind](client).then(
              () => undefined,
              (error: unknown) => error
            )
          )

          assert.isAtMost(done(), 1)
          assert.isAtMost(sent.length, maxRetries + 1)
          if (kind === "call") assert.lengthOf(sent, 1)
          else assert.lengthOf([...new Set(sent.map(({ key }) => key))], 1)

          if (failure === undefined) assert.strictEqual(done(), 1)
          else {
            assert.instanceOf(failure, GatewayError)
            const isUnknown = failure instanceof ConnectionError || failure instanceof ServerError
            if (!isUnknown) assert.strictEqual(done(), 0, String(failure))
          }

          for (const [index, { at, retryAfter }] of sent.entries()) {
            const next = sent[index + 1]
            if (next === undefined) continue
            assert.isAtMost(retryAfter, 60)
            assert.isAtLeast(next.at - at, retryAfter * 1000)
            assert.isAtMost(next.at - at, retryAfter * 1000 + 8000)
          }
        }
      ),
      { numRuns: 400 }
    )
  })

  it("wait between Retry-After and a bound above it that doubles up to 8 seconds", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 1000 }),
        fc.option(fc.double({ min: 0, max: 60, noNaN: true }), { nil: undefined }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (retry, retryAfter, random) => {
          const least = (retryAfter ?? 0) * 1000
          const delay = retryDelay(retry, retryAfter, random)
          assert.isAtLeast(delay, least)
          assert.isAtMost(delay, least + Math.min(8000, 500 * 2 ** retry))
          assert.strictEqual(retryDelay(retry, retryAfter, 0), least, "jitter is full")
        }
      )
    )
  })
})
