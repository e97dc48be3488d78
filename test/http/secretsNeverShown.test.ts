import { PgClient } from "@effect/sql-pg"
import { Cause, Effect, Tracer } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { dashscope } from "../../src/testing/vendors/DashScopeProtocol.ts"
import { ApiKeys } from "../../src/users/ApiKeys.ts"
import { makeKey } from "../support/callers.ts"
import { anthropicScript, mockAnthropic } from "../support/mockAnthropic.ts"
import { mockOpenAi, openAiScript } from "../support/mockOpenAi.ts"
import { json, mockVendor, upstreamOfTests } from "../support/mockVendors.ts"
import type { Script } from "../support/mockVendors.ts"
import { gatewayOfTests } from "../support/passthroughGateway.ts"
import { Upstream } from "../support/upstreams/Upstream.ts"

const vendorKeys = {
  openaiA: "sk-proj-AAAA1111vendorsecretopenaiA",
  openaiB: "sk-proj-BBBB2222vendorsecretopenaiB",
  anthropic: "sk-ant-api03-CCCC3333vendorsecret",
  gemini: "AIzaSyDDDD4444vendorsecretgemini",
  dashscope: dashscope.key,
  fal: "fal-key-id:EEEE5555vendorsecretfal",
  replicate: "r8_FFFF6666vendorsecretreplicate"
}
const masterKey = Buffer.alloc(32, 7).toString("base64")

const spans: Array<Tracer.NativeSpan> = []
/** All responses to clients, except the ones that show a new key or secret. */
const responses: Array<string> = []
/** Keys and secrets of clients. */
const secrets: Array<string> = []

/**
 * A vendor that fails in every way, one after the other. At the end it refuses the service's key and quotes it, after
 * which its account is no longer used.
 */
const degraded = (works: Script): Script => {
  let calls = 0
  return (request, response) => {
    const { headers } = request
    const key = headers["x-api-key"] ?? headers["x-goog-api-key"] ?? headers.authorization
    const error = { message: `Incorrect API key provided: ${key}` }
    calls += 1
    switch (calls) {
      case 1:
        return json(response, 429, { error: { message: "slow" } }, { "retry-after-ms": "1" })
      case 2:
        return void response.destroy()
      case 3:
        return works(request, response)
      case 4:
        return json(response, 500, { error: { message: "broken" } })
      default:
        return json(response, 401, { error }, { "x-echo": String(key) })
    }
  }
}

const openai = await upstreamOfTests(mockOpenAi())
const anthropic = await upstreamOfTests(mockAnthropic())
const gemini = await upstreamOfTests(
  mockVendor((_, response) =>
    json(response, 200, { candidates: [], usageMetadata: { promptTokenCount: 1 } })
  )
)
const tasks = await Upstream.start(dashscope)
afterAll(() => tasks.close())
const tracer = Tracer.make({
  span: (options) => {
    const span = new Tracer.NativeSpan(options)
    spans.push(span)
    return span
  }
})
const gateway = await gatewayOfTests(
  {
    OPENAI_API_KEY: `${vendorKeys.openaiA};name=a,${vendorKeys.openaiB}`,
    OPENAI_BASE_URL: `${openai.origin}/v1`,
    ANTHROPIC_API_KEY: vendorKeys.anthropic,
    ANTHROPIC_BASE_URL: anthropic.origin,
    GEMINI_API_KEY: vendorKeys.gemini,
    GEMINI_BASE_URL: gemini.origin,
    DASHSCOPE_API_KEY: vendorKeys.dashscope,
    DASHSCOPE_BASE_URL: `${tasks.url}/api/v1`,
    FAL_API_KEY: vendorKeys.fal,
    REPLICATE_API_KEY: vendorKeys.replicate,
    EGRESS_ALLOW: "127.0.0.1",
    UPSTREAM_TIMEOUT: "1 second"
  },
  1000n,
  tracer
)
secrets.push(gateway.key)

const chat = { model: "gpt-4o", max_tokens: 50, messages: [{ role: "user", content: "Hi" }] }
const message = { ...chat, model: "claude-haiku-4-5" }
const generate = "/vendors/google/v1beta/models/gemini-2.5-flash:generateContent"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Sends a request and keeps the response. */
const call = async (
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: unknown
) => {
  const answer = await fetch(`${gateway.origin}${path}`, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const text = await answer.text().catch(String)
  responses.push(`${answer.status} ${JSON.stringify([...answer.headers])} ${text}`)
  return { status: answer.status, text }
}

/** Creates a secret by the management API, twice with the same Idempotency-Key; only these responses show it. */
const createSecret = async (path: string, body: object, member: string): Promise<string> => {
  const headers = { authorization: `Bearer ${gateway.key}`, "idempotency-key": path }
  const first = await call("POST", path, headers, body)
  const again = await call("POST", path, headers, body)
  responses.splice(-2)
  const secret = String(JSON.parse(first.text)[member])
  assert.match(secret, /^(?:sk-|whsec_)/, first.text)
  assert.include(again.text, secret)
  secrets.push(secret)
  return secret
}

const revokedKey = async () => {
  const { key, row } = await gateway.run(makeKey(gateway.userId, ["inference"]))
  await call("POST", "/v1/chat/completions", { authorization: `Bearer ${key}` }, chat)
  await gateway.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(gateway.userId, row.id)))
  return key
}

/** Where clients put their keys, correctly and wrongly. */
const places = (
  key: string
): ReadonlyArray<readonly [headers: Record<string, string>, query: string]> => [
  [{ authorization: `Bearer ${key}` }, ""],
  [{ "x-api-key": key }, ""],
  [{ "x-goog-api-key": key }, ""],
  [{}, `?key=${key}`],
  [{ authorization: `Bearer ${key}` }, `?api_key=${key}&a=1`],
  [{ authorization: key }, ""],
  [{ authorization: `Basic ${Buffer.from(key).toString("base64")}` }, ""],
  [{ authorization: `Bearer ${key}`, cookie: `key=${key}`, "api-key": key }, ""]
]

const busyRun = async () => {
  const made = await createSecret("/manage/v1/api-keys", { name: "made" }, "key")
  const hook = { url: "https://127.0.0.1:1/hook", events: ["task.created", "task.failed"] }
  await createSecret("/manage/v1/webhook-endpoints", hook, "secret")
  const revoked = await revokedKey()
  const wrong = `${made.slice(0, -1)}${made.endsWith("0") ? "1" : "0"}`
  secrets.push(revoked, wrong)
  openai.script = () => {}
  await call("POST", "/v1/chat/completions", { authorization: `Bearer ${made}` }, chat)
  openai.script = degraded(openAiScript)
  anthropic.script = degraded(anthropicScript)
  gemini.script = degraded((_, response) => json(response, 200, { candidates: [] }))
  for (const key of [made, revoked, wrong]) {
    for (const [headers, query] of places(key)) {
      await Promise.all([
        call("POST", `/v1/chat/completions${query}`, headers, chat),
        call("POST", `/v1/chat/completions${query}`, headers, { ...chat, stream: true }),
        call("POST", `/vendors/anthropic/v1/messages${query}`, headers, message),
        call("POST", `${generate}${query}`, headers, { contents: [] }),
        call("GET", `/v1/models${query}`, headers),
        call("GET", `/v1/nowhere${query}`, headers),
        call("POST", `${image}?dry_run=true&${query.slice(1)}`, headers, { prompt: "x" }),
        call("GET", `/manage/v1/wallet${query}`, headers)
      ])
    }
  }
  await gateway.settled()
  tasks.submitFaults = ["operator"]
  const owner = { authorization: `Bearer ${gateway.key}` }
  for (const wait of [{ prompt: "one" }, { prompt: "two" }]) {
    const created = await call("POST", image, owner, wait)
    if (created.status !== 202) continue
    const { id } = JSON.parse(created.text).task_info
    await call("GET", `${image}/${id}`, { ...owner, prefer: "wait=10" })
    await call("GET", `/manage/v1/tasks/${id}`, owner)
  }
  for (const list of ["api-keys", "webhook-endpoints", "webhook-deliveries", "calls", "tasks"])
    await call("GET", `/manage/v1/${list}`, owner)
}

/** Every row of every table, bytes as hex. */
const dumpDatabase = (): Promise<string> =>
  gateway.run(
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const tables = yield* sql`
        SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema' AND c.relkind = 'r'`
      const rows = yield* Effect.forEach(tables, ({ name }) =>
        sql.unsafe(`SELECT to_jsonb(t)::text AS line FROM ${String(name)} t`)
      )
      return JSON.stringify(rows)
    }) as Effect.Effect<string>
  )

const describeSpan = (span: Tracer.NativeSpan): string => {
  const failure =
    span.status._tag === "Ended" && span.status.exit._tag === "Failure"
      ? Cause.pretty(span.status.exit.cause)
      : ""
  return `${span.name} ${JSON.stringify([...span.attributes])} ${JSON.stringify(
    span.events,
    (_, it) => (typeof it === "bigint" ? String(it) : it)
  )} ${failure}`
}

describe("after a run with every kind of vendor fault", () => {
  it("no key or secret is in logs, traces, errors, metrics or the database", async () => {
    await busyRun()
    const metrics = await (await fetch(`${gateway.origin}/metrics`)).text()
    const database = await dumpDatabase()
    const places = {
      logs: gateway.logs.join("\n"),
      traces: spans.map(describeSpan).join("\n"),
      responses: responses.join("\n"),
      metrics,
      database
    }
    // Each output has content of the run
    assert.include(places.logs, "refused the service's own key")
    assert.include(places.traces, "/v1/chat/completions")
    for (const status of [200, 202, 401, 404, 500, 502, 503, 504])
      assert.isTrue(
        responses.some((it) => it.startsWith(`${status} `)),
        `no ${status}`
      )
    assert.include(metrics, "gateway_upstream_troubles_total")
    assert.include(database, "POST /v1/chat/completions")
    const leaks: Array<string> = []
    for (const secret of [...Object.values(vendorKeys), ...secrets, masterKey]) {
      const bytes = Buffer.from(secret)
      const forms = {
        whole: secret,
        part: secret.slice(-24, -4),
        hex: bytes.toString("hex"),
        base64: bytes.toString("base64").replace(/=+$/u, ""),
        percent: encodeURIComponent(secret)
      }
      for (const [place, text] of Object.entries(places)) {
        for (const [form, needle] of Object.entries(forms)) {
          const at = text.indexOf(needle)
          if (at >= 0)
            leaks.push(`${place}: ${form} of ${secret}: …${text.slice(at - 160, at + 60)}`)
        }
      }
    }
    assert.deepEqual(leaks, [])
  })
})
