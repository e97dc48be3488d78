import { readFileSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { smallBodyBytesMax } from "../../../src/domain/limits/Limits.ts"
import { catalogFile } from "../../support/aliases.ts"
import { adminToken } from "../../support/gateway.ts"
import { chatCompletion } from "../../support/mockOpenAi.ts"
import { events, json, mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import type { Script } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"

/** docs/catalog.md#vendors: vendors of language models that are data. */

const price = { per: "million_tokens", input: "1000000.00", output: "2000000.00" }
const limits = { inputTokensMax: 100, outputTokensMax: 50 }
const chat = "/v1/chat/completions"

const entry = {
  base: "https://api.acme.example/v1",
  auth: "bearer",
  dialect: "openai",
  routes: [chat, "/v1/embeddings", "/v1/models"],
  models: [{ model: "org/chat-1", price: { ...price, cachedInput: "500000.00" }, ...limits }]
}

const vendors = [
  { ...entry, name: "acme", usage: { cachedTokens: "hits", reasoning: "shown" } },
  { ...entry, name: "quiet", auth: "api-key", usage: { inStreams: "unasked" } },
  { ...entry, name: "beside", usage: { reasoningTokens: "beside" } },
  { ...entry, name: "local", auth: "optional-bearer", base: undefined },
  { ...entry, name: "inside" },
  { ...entry, name: "simulated" },
  {
    ...entry,
    name: "claudish",
    auth: "x-api-key",
    dialect: "anthropic",
    routes: ["/v1/messages", "/v1/messages/count_tokens"]
  }
]
const aliases = [
  {
    alias: "anyone",
    vendor: "openai",
    to: [{ model: "acme/org/chat-1" }, { model: "quiet/org/chat-1" }]
  }
]
const content = { vendors, aliases }

const usage = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }

const usual: Script = (request, response) => {
  if (request.url.endsWith("/models")) {
    const own = { id: "org/chat-1", object: "model", created: 1, owned_by: "acme" }
    return json(response, 200, { object: "list", data: [own, { ...own, id: "unpriced" }] })
  }
  const body = JSON.parse(request.body)
  return json(response, 200, { ...chatCompletion(body.model), usage })
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const chunk = (delta: object, more: object = {}) =>
  data({ object: "chat.completion.chunk", choices: [{ index: 0, delta, ...more }] })

const file = catalogFile(content)

const vendor = await upstreamOfTests(mockVendor(usual))
const base = `${vendor.origin}/v1`
const gateway = await gatewayOfTests({
  ACME_API_KEY: "sk-secret-of-acme;name=one",
  ACME_BASE_URL: base,
  QUIET_API_KEY: "sk-secret-of-quiet",
  QUIET_BASE_URL: base,
  BESIDE_API_KEY: `sk-secret-of-beside;base=${base}`,
  LOCAL_BASE_URL: base,
  INSIDE_API_KEY: "sk-secret-of-inside",
  CLAUDISH_API_KEY: "sk-secret-of-claudish",
  CLAUDISH_BASE_URL: vendor.origin,
  UPSTREAM_TIMEOUT: "2 seconds",
  CATALOG_FILE: file
})

const ask = (model: string, more: object = {}, path = chat) =>
  gateway.post(path, {
    model,
    max_tokens: 5,
    messages: [{ role: "user", content: "Hi" }],
    ...more
  })

const manage = async (path: string, init: RequestInit = {}) => {
  const headers = { authorization: `Bearer ${adminToken}` }
  const response = await fetch(`${gateway.origin}/manage/v1/${path}`, { ...init, headers })
  return { status: response.status, body: (await response.json()) as { data: Array<Row> } }
}
type Row = Readonly<Record<string, unknown>>

describe("a vendor of the catalog", () => {
  it("is called at /v1 by vendor/model, with its own key and its own name of the model", async () => {
    const response = await ask("acme/org/chat-1")
    assert.equal(response.status, 200)
    assert.isNull(response.headers.get("x-service-sandbox"))
    const [seen] = vendor.seen
    assert.equal(seen?.url, "/v1/chat/completions")
    assert.equal(seen?.headers.authorization, "Bearer sk-secret-of-acme")
    assert.equal(JSON.parse(seen!.body).model, "org/chat-1")
    const call = await gateway.newest()
    assert.deepEqual([call.vendor, call.model], ["acme", "org/chat-1"])
    assert.equal(call.captured, 10n * 1_000_000n + 4n * 2_000_000n)
  })

  it("is called below its own path by its own name of the model", async () => {
    const response = await ask("org/chat-1", {}, `/vendors/acme${chat}`)
    assert.equal(response.status, 200)
    assert.equal((await gateway.newest()).vendor, "acme")
  })

  it("is not called below the path of another vendor", async () => {
    const response = await ask("quiet/org/chat-1", {}, `/vendors/acme${chat}`)
    assert.equal(response.status, 404)
    assert.equal((await jsonOf(response)).code, 2006)
    assert.lengthOf(vendor.seen, 0)
  })

  it("is tried in turn as a model of an alias", async () => {
    vendor.script = (request, response) =>
      request.headers.authorization === undefined
        ? usual(request, response)
        : json(response, 429, { error: { message: "busy" } }, { "retry-after": "0" })
    const response = await ask("anyone")
    assert.equal(response.status, 200)
    assert.equal(response.headers.get("x-service-model"), "quiet/org/chat-1")
  })

  it("does not serve a model without a price, nor a route that its entry does not open", async () => {
    const unpriced = await ask("acme/org/chat-2")
    assert.equal(unpriced.status, 404)
    assert.include((await jsonOf(unpriced)).detail, "has no price")
    const closed = await gateway.post("/v1/responses", { model: "acme/org/chat-1", input: "Hi" })
    assert.equal(closed.status, 404)
    const instead =
      "org/chat-1 speaks OpenAI Chat Completions: use /vendors/acme/v1/chat/completions"
    assert.equal((await jsonOf(closed)).detail, instead)
    const count = { model: "acme/org/chat-1", messages: [] }
    const uncounted = await gateway.post("/v1/messages/count_tokens", count)
    assert.equal(uncounted.status, 404)
    const missing = "acme is not offered at POST /v1/messages/count_tokens"
    assert.equal((await jsonOf(uncounted)).detail, missing)
    assert.lengthOf(vendor.seen, 0)
  })

  const count = "/v1/messages/count_tokens"

  it("counts tokens by vendor/model, at the vendor and for free, whatever the size of the body", async () => {
    vendor.script = (_request, response) => json(response, 200, { input_tokens: 7 })
    for (const system of ["Hi", "long ".repeat(smallBodyBytesMax / 4)]) {
      const response = await ask("claudish/org/chat-1", { system }, count)
      assert.equal(response.status, 200)
      assert.deepEqual(await response.json(), { input_tokens: 7 })
      const seen = vendor.seen.at(-1)
      const { model, system: received } = JSON.parse(seen!.body)
      assert.deepEqual([seen?.url, model, received === system], [count, "org/chat-1", true])
      assert.equal(seen?.headers["x-api-key"], "sk-secret-of-claudish")
    }
  })

  it("refuses a free call whose body is not JSON, whatever its size", async () => {
    for (const size of [1, smallBodyBytesMax]) {
      const cut = `{"model":"claudish/org/chat-1","system":"${"a".repeat(size)}"`
      const response = await gateway.post(count, cut)
      assert.equal(response.status, 400)
      assert.equal((await jsonOf(response)).code, 2002)
    }
    assert.lengthOf(vendor.seen, 0)
  })

  it("holds no more than the client allows", async () => {
    const headers = { "x-service-max-cost": "1.00" }
    const body = { model: "acme/org/chat-1", messages: [] }
    const response = await gateway.post(chat, body, headers)
    assert.equal(response.status, 402)
    assert.equal((await jsonOf(response)).code, 1103)
  })

  it("is served by the simulator without a key, whole and as a stream", async () => {
    for (const stream of [false, true]) {
      const response = await ask("simulated/org/chat-1", { stream })
      assert.equal(response.status, 200)
      assert.equal(response.headers.get("x-service-sandbox"), "true")
      await response.text()
    }
    assert.lengthOf(vendor.seen, 0)
  })

  it("may speak Anthropic's dialect, at /v1/messages", async () => {
    vendor.script = (request, response) =>
      json(response, 200, {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: JSON.parse(request.body).model,
        content: [{ type: "text", text: "Hello" }],
        stop_reason: "end_turn",
        usage: { input_tokens: 10, output_tokens: 4 }
      })
    const response = await ask("claudish/org/chat-1", {}, "/v1/messages")
    assert.equal(response.status, 200)
    assert.equal(vendor.seen[0]?.headers["x-api-key"], "sk-secret-of-claudish")
    assert.equal((await gateway.newest()).captured, 10n * 1_000_000n + 4n * 2_000_000n)
  })
})

describe("the account of a vendor of the catalog", () => {
  it("sends its key as the entry says", async () => {
    await ask("quiet/org/chat-1")
    assert.equal(vendor.seen[0]?.headers["api-key"], "sk-secret-of-quiet")
    assert.isUndefined(vendor.seen[0]?.headers.authorization)
  })

  it("needs no key at a server without keys, only the operator's base", async () => {
    const response = await ask("local/org/chat-1")
    assert.equal(response.status, 200)
    assert.isUndefined(vendor.seen[0]?.headers.authorization)
  })

  it("is masked in what its vendor responds", async () => {
    vendor.script = (_, response) =>
      json(response, 400, { error: { message: "the key sk-secret-of-acme is odd" } })
    const text = await (await ask("acme/org/chat-1")).text()
    assert.notInclude(text, "secret-of-acme")
  })

  it("has a circuit, metrics and a check like other accounts", async () => {
    const { body } = await manage("accounts")
    const own = body.data.find(({ id }) => id === "acme:one")
    assert.equal(own?.["provider"], "acme")
    const checked = await manage("accounts/acme:one/check", { method: "POST" })
    assert.equal(checked.status, 200)
    assert.include(await gateway.metrics(), 'account="acme:one"')
  })

  it("appears with the catalog that opens its vendor, without a restart", async () => {
    assert.equal((await ask("simulated/org/chat-1")).headers.get("x-service-sandbox"), "true")
    const [acme, ...others] = vendors
    const moved = [{ ...acme, auth: "api-key" }, ...others]
    writeFileSync(file, JSON.stringify({ vendors: moved, aliases }))
    const { body, status } = await manage("catalog/reload", { method: "POST" })
    assert.equal(status, 200, JSON.stringify(body))
    assert.include(JSON.stringify(body), '"type":"vendor","id":"acme"')
    await ask("acme/org/chat-1")
    assert.equal(vendor.seen.at(-1)?.headers["api-key"], "sk-secret-of-acme")
    writeFileSync(file, JSON.stringify(content))
    assert.equal((await manage("catalog/reload", { method: "POST" })).status, 200)
  })

  it("makes the reload that would open its vendor fail if it cannot be read", async () => {
    const before = readFileSync(file, "utf8")
    const nowhere = { ...entry, name: "inside", base: undefined }
    writeFileSync(file, JSON.stringify({ vendors: [nowhere] }))
    const { body, status } = await manage("catalog/reload", { method: "POST" })
    writeFileSync(file, before)
    assert.equal(status, 400)
    assert.include(JSON.stringify(body), "INSIDE_API_KEY")
    assert.notInclude(JSON.stringify(body), "sk-secret")
  })
})

describe("differences in usage figures", () => {
  it("cached tokens are read under the vendor's own name", async () => {
    vendor.script = (_, response) =>
      json(response, 200, { ...chatCompletion("org/chat-1"), usage: { ...usage, hits: 6 } })
    await ask("acme/org/chat-1")
    assert.equal(
      (await gateway.newest()).captured,
      4n * 1_000_000n + 6n * 500_000n + 4n * 2_000_000n
    )
  })

  it("reasoning tokens reported beside the output tokens are charged too", async () => {
    const details = { completion_tokens_details: { reasoning_tokens: 7 } }
    vendor.script = (_, response) =>
      json(response, 200, { ...chatCompletion("org/chat-1"), usage: { ...usage, ...details } })
    await ask("beside/org/chat-1")
    assert.equal((await gateway.newest()).captured, 10n * 1_000_000n + 11n * 2_000_000n)
  })

  it("a vendor that refuses stream_options gets none, and its last chunk is read", async () => {
    vendor.script = (request, response) => {
      if (request.body.includes("stream_options")) return json(response, 422, { detail: "extra" })
      const last = data({
        choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
        usage
      })
      return events(response, [chunk({ content: "Hello" }), last, "data: [DONE]\n\n"])
    }
    for (const options of [{}, { stream_options: { include_usage: true } }]) {
      const response = await ask("quiet/org/chat-1", { stream: true, ...options })
      assert.equal(response.status, 200)
      assert.include(await response.text(), '"total_tokens":14')
      assert.equal((await gateway.newest()).captured, 10n * 1_000_000n + 4n * 2_000_000n)
    }
  })

  it("a stream that shows its reasoning is closed at once when its client leaves", async () => {
    const leaving = new AbortController()
    vendor.script = (_, response) =>
      events(
        response,
        [chunk({ reasoning_content: "Hm" }), ...Array.from({ length: 400 }, () => chunk({}))],
        async (index) => {
          if (index > 1) await new Promise((resolve) => setTimeout(resolve, 5))
        }
      )
    const body = { model: "acme/org/chat-1", stream: true, max_tokens: 50, messages: [] }
    const response = await gateway.post(chat, body, {}, { signal: leaving.signal })
    await response.body!.getReader().read()
    leaving.abort()
    const call = await gateway.newest()
    assert.deepInclude(call.usage, { counted: true })
    assert.isDefined(vendor.seen[0]?.aborted)
  })
})

describe("lists of models", () => {
  const listAt = async (path: string) => {
    const response = await fetch(`${gateway.origin}${path}`, {
      headers: { authorization: `Bearer ${gateway.key}` }
    })
    const { data } = (await response.json()) as { data: ReadonlyArray<{ id: string }> }
    return data.map(({ id }) => id)
  }

  it("of a vendor have its models with a price", async () => {
    assert.deepEqual(await listAt("/vendors/acme/v1/models"), ["org/chat-1"])
  })

  it("of a vendor whose list is an array are arrays", async () => {
    vendor.script = (_, response) => json(response, 200, [{ id: "org/chat-1" }, { id: "unpriced" }])
    const response = await fetch(`${gateway.origin}/vendors/acme/v1/models`, {
      headers: { authorization: `Bearer ${gateway.key}` }
    })
    const list = (await response.json()) as ReadonlyArray<Row>
    assert.deepEqual(
      list.map(({ id, price }) => [id, typeof price]),
      [["org/chat-1", "object"]]
    )
  })

  it("at /v1 have the models of other vendors of the dialect as vendor/model", async () => {
    const ids = await listAt("/v1/models")
    assert.includeMembers(ids, ["gpt-4o", "acme/org/chat-1", "deepseek/deepseek-chat", "anyone"])
    assert.notInclude(ids, "claudish/org/chat-1")
  })

  it("at /v1 show each of them by its name, with the slash as it is or encoded", async () => {
    const get = async (path: string, method = "GET") => {
      const headers = { authorization: `Bearer ${gateway.key}` }
      const response = await fetch(`${gateway.origin}${path}`, { method, headers })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    const list = (await get("/v1/models")).body["data"] as ReadonlyArray<{ id: string }>
    for (const id of ["acme/org/chat-1", "deepseek/deepseek-chat"]) {
      for (const name of [id, encodeURIComponent(id)]) {
        const { body, status } = await get(`/v1/models/${name}`)
        assert.equal(status, 200, name)
        assert.deepEqual(body, list.find((it) => it.id === id) as object)
      }
    }
    for (const name of ["claudish/org/chat-1", "acme%2Funknown", "nobody/model", "acme/%ff"]) {
      const { body, status } = await get(`/v1/models/${name}`)
      assert.deepEqual([status, body["code"]], [404, 2006], name)
      assert.include(String(body["detail"]), "is not offered here", name)
    }
    assert.equal((await get("/v1/models/acme%2Forg%2Fchat-1", "DELETE")).status, 405)
    assert.isTrue(vendor.seen.every(({ url }) => url.endsWith("/models")))
  })

  it("of the management API have them with their prices", async () => {
    const rows: Array<Row> = []
    for (let path: string | null = "models?limit=100"; path !== null;) {
      const { body } = await manage(path)
      rows.push(...body.data)
      const { next_cursor: next } = body as unknown as { next_cursor: string | null }
      path = next === null ? null : `models?limit=100&cursor=${encodeURIComponent(next)}`
    }
    const own = rows.find(({ model, vendor: of }) => of === "acme" && model === "org/chat-1")
    assert.equal(own?.["path"], "/vendors/acme/v1/chat/completions")
    assert.equal(own?.["sandbox"], false)
  })
})
