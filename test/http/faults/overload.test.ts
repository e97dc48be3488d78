import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { limiterOf } from "../../support/admission.ts"
import { adminToken } from "../../support/gateway.ts"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"
import { rawHttp } from "../../support/rawHttp.ts"
import { until } from "../../support/until.ts"

/** docs/reference/http.md#overload, ADR 0207 */

/** Equal, so that a slow machine does not change what is admitted. */
const bounds = { least: 8, usual: 8, most: 8 }
const limiters = { creates: limiterOf(bounds), calls: limiterOf(bounds) }

const upstream = await upstreamOfTests(mockOpenAi())
const env = {
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: `${upstream.origin}/v1`,
  SIMULATOR_DELAY: "1 hour"
}
const gateway = await gatewayOfTests(env, 1000n, undefined, limiters)

const create = "/vendors/alibaba/v1/text-to-image-preview/generation"
const job = { prompt: "A lighthouse", n: 1 }
const chat = { model: "gpt-4o", max_tokens: 10, messages: [] }
const newWork = [
  [create, job],
  ["/v1/images/generations", { prompt: "A lighthouse", model: "text-to-image-max" }],
  ["/v1/videos", { prompt: "A lighthouse", model: "text-to-video-max" }],
  ["/v1/chat/completions", chat],
  ["/v1/chat/completions", { ...chat, stream: true }],
  ["/vendors/openai/v1/chat/completions", chat]
] as const

/** What all callers together are admitted: a third more than a single one. */
const capacity = Math.ceil((bounds.most * 4) / 3)

/** Floods of 40 requests, one after the other. */
const rounds = 8

/** Fills the limiter with as many operations as it admits, all waiting for the store. */
const fill = (count = capacity) => {
  for (let n = 0; n < count; n += 1)
    for (const limiter of Object.values(limiters)) limiter.begin("user")
}
const drain = (count = capacity) => {
  for (let n = 0; n < count; n += 1) {
    for (const limiter of Object.values(limiters)) limiter.end("user", performance.now(), 1)
  }
}

const statusOf = async (response: Promise<Response>) => {
  const { body, status } = await response
  await body?.cancel()
  return status
}

const get = (path: string, method = "GET", token: string = gateway.key) =>
  fetch(`${gateway.origin}${path}`, { method, headers: { authorization: `Bearer ${token}` } })

describe("an overloaded process", () => {
  it("refuses new work with a problem, and does nothing for it", async () => {
    fill()
    for (const [path, body] of newWork) {
      const response = await gateway.post(path, body)
      assert.strictEqual(response.status, 503, path)
      assert.strictEqual(response.headers.get("content-type"), "application/problem+json")
      assert.strictEqual(response.headers.get("retry-after"), "1")
      assert.match(response.headers.get("traceparent") ?? "", /^00-[0-9a-f]{32}-/u)
      const problem = (await response.json()) as Record<string, unknown>
      assert.deepInclude(problem, { code: 5003, status: 503, instance: path })
      assert.match(String(problem["detail"]), /overloaded/u)
      assert.strictEqual("error" in problem, path !== create)
    }
    assert.strictEqual((await gateway.settled()).held, 0n)
    assert.lengthOf(await gateway.entries(), 1)
    assert.lengthOf(await gateway.calls(), 0)
    assert.lengthOf(upstream.seen, 0)
    const tasks = (await (await get("/manage/v1/tasks")).json()) as { data: Array<unknown> }
    assert.lengthOf(tasks.data, 0)
    drain()
  })

  it("refuses a body that the client only announces, and closes the connection", async () => {
    fill()
    const { port } = new URL(gateway.origin)
    const lines = [`POST ${create} HTTP/1.1`, "host: x", "content-type: application/json"]
    const head = [...lines, "content-length: 40", "expect: 100-continue", "", ""].join("\r\n")
    const { text } = await Effect.runPromise(rawHttp(Number(port), (write) => write(head)))
    assert.match(text, /^HTTP\/1\.1 503 /u)
    assert.match(text, /^connection: close\r$/imu)
    drain()
  })

  it("refuses nothing else, and counts what it refused", async () => {
    fill()
    for (const path of ["/healthz", "/readyz", "/manage/v1/wallet", "/v1/models"]) {
      assert.strictEqual(await statusOf(get(path)), 200, path)
    }
    const missing = `${create}/01890000-0000-7000-8000-000000000000`
    assert.strictEqual(await statusOf(get(missing)), 404)
    assert.strictEqual(await statusOf(get(missing, "DELETE")), 404)
    const user = { email: "other@example.com" }
    const headers = { authorization: `Bearer ${adminToken}` }
    assert.strictEqual(await statusOf(gateway.post("/manage/v1/users", user, headers)), 201)
    const metrics = await gateway.metrics()
    assert.match(metrics, /^gateway_overload_refused_total\{cause="creates"\} 4$/mu)
    assert.match(metrics, /^gateway_overload_refused_total\{cause="calls"\} 3$/mu)
    drain()
  })

  it("serves everything again once the waiting work is done", async () => {
    assert.strictEqual(await statusOf(gateway.post(create, job)), 202)
    assert.strictEqual(await statusOf(gateway.post("/v1/chat/completions", chat)), 200)
  })

  it("refuses nothing while calls wait for a slow vendor and creates wait for the end of their tasks", async () => {
    const silent: Array<() => void> = []
    upstream.script = (_request, response) => {
      silent.push(() => response.end("{}"))
    }
    const calls: Array<Promise<number>> = []
    for (let n = 1; n <= bounds.most * 5; n += 1) {
      calls.push(statusOf(gateway.post("/v1/chat/completions", { ...chat, stream: n % 2 === 0 })))
      await until(() => silent.length === n, { what: "the vendor has the call" })
    }
    const left = new AbortController()
    const waiting: Array<Promise<unknown>> = []
    for (let n = 1; n <= bounds.most * 2; n += 1) {
      const prefer = { prefer: "wait=60" }
      const wait = gateway.post(create, job, prefer, { signal: left.signal })
      waiting.push(
        wait.then(
          ({ status }) => status,
          (error: Error) => error.name
        )
      )
      assert.strictEqual(await statusOf(gateway.post(create, job)), 202)
    }
    left.abort()
    assert.deepStrictEqual([...new Set(await Promise.all(waiting))], ["AbortError"])
    for (const respond of silent) respond()
    assert.deepStrictEqual([...new Set(await Promise.all(calls))], [200])
  })

  it("no longer counts calls whose clients have left", async () => {
    for (let n = 0; n < bounds.most * 2; n += 1) {
      const left = new AbortController()
      const call = gateway.post("/v1/chat/completions", chat, {}, { signal: left.signal })
      setImmediate(() => left.abort())
      await call.catch(() => {})
    }
    // The gateway reads that a client has left a moment later
    const isServed = async () => {
      fill(capacity - 1)
      const status = await statusOf(gateway.post("/v1/chat/completions", chat))
      drain(capacity - 1)
      return status === 200
    }
    await until(isServed, { what: "the places of the calls" })
  })

  it("refuses no create with a key while others flood it without a key", async () => {
    assert.strictEqual(await statusOf(gateway.post(create, job)), 202)
    const anonymous: Array<number> = []
    for (let round = 0; round < rounds; round += 1) {
      const flood = Array.from({ length: 40 }, () =>
        statusOf(fetch(`${gateway.origin}/mcp`, { method: "POST", body: "{}" }))
      )
      const created = [1, 2].map(() => statusOf(gateway.post(create, job)))
      anonymous.push(...(await Promise.all(flood)))
      assert.deepStrictEqual(await Promise.all(created), [202, 202], `round ${round}`)
    }
    assert.deepStrictEqual([...new Set(anonymous)].toSorted(), [401, 503])
  })

  it("refuses no create of one user while another one floods it without credits", async () => {
    const post = async (path: string, body: object) => {
      const response = await gateway.post(`/manage/v1${path}`, body, {
        authorization: `Bearer ${adminToken}`
      })
      return (await response.json()) as { readonly id: string; readonly key: string }
    }
    const { id } = await post("/users", { email: "poor@example.com" })
    const { key } = await post(`/users/${id}/api-keys`, { name: "key", scopes: ["inference"] })
    const poor = () => statusOf(gateway.post(create, job, { authorization: `Bearer ${key}` }))
    assert.strictEqual(await poor(), 402)
    const refused: Array<number> = []
    for (let round = 0; round < rounds; round += 1) {
      const flood = Array.from({ length: 40 }, poor)
      const created = [1, 2].map(() => statusOf(gateway.post(create, job)))
      refused.push(...(await Promise.all(flood)))
      assert.deepStrictEqual(await Promise.all(created), [202, 202], `round ${round}`)
    }
    assert.deepStrictEqual([...new Set(refused)].toSorted(), [402, 503])
  })
})
