import Anthropic, { AuthenticationError } from "@anthropic-ai/sdk"
import { ApiError, GoogleGenAI } from "@google/genai"
import { assert, describe, it } from "vitest"
import { fails } from "../../support/fails.ts"
import { json } from "../../support/mockVendors.ts"
import type { Script } from "../../support/mockVendors.ts"
import { gatewayBeforeVendors } from "../../support/recordedVendors.ts"

const { anthropic, gateway, google, openai } = await gatewayBeforeVendors()

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway.origin}${path}`, {
    headers: { authorization: `Bearer ${gateway.key}`, ...headers }
  })

/** The members that the tests read. */
interface Body {
  readonly code: number
  readonly type: string
  readonly detail: string
  readonly title: string
  readonly status: number
  readonly instance: string
  readonly errors: ReadonlyArray<object>
  readonly error: Readonly<Record<string, string | number>>
  readonly object: string
  readonly id: string
  readonly has_more: boolean
  readonly nextPageToken: string
  readonly price: Price
  readonly data: ReadonlyArray<{ readonly id: string; readonly price: Price }>
  readonly models: ReadonlyArray<{ readonly name: string; readonly price: Price }>
}

interface Price {
  readonly per: string
  readonly input: string
  readonly output: string
}

const bodyOf = async (response: Response | Promise<Response>): Promise<Body> =>
  (await (await response).json()) as Body

const options = { timeout: 120_000 }
const messages = "/vendors/anthropic/v1/messages"
const gemini = "/vendors/google/v1beta/models/gemini-2.5-flash"
const chat = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }
const contents = { contents: [{ parts: [{ text: "Hi" }] }] }

/** docs/reference/errors.md#error-members-of-the-vendors */
describe("a problem in the dialect of its route", options, () => {
  it("is an Anthropic error on Anthropic's routes, and Anthropic's client shows its message", async () => {
    const answer = await gateway.post(messages, { max_tokens: 5, messages: [] })
    const problem = await bodyOf(answer)
    assert.equal(answer.headers.get("content-type"), "application/problem+json")
    const { code, detail, errors, instance, status, title, ...rest } = problem
    assert.deepEqual([code, status, title, instance], [2001, 400, "Invalid parameter", messages])
    assert.isNotEmpty(errors)
    const traceId = answer.headers.get("traceparent")?.split("-")[1]
    assert.deepEqual(rest as object, {
      type: "error",
      error: { type: "invalid_request_error", message: detail },
      request_id: traceId
    })
    assert.equal(answer.headers.get("request-id"), traceId)
    for (const baseURL of [gateway.origin, `${gateway.origin}/vendors/anthropic`]) {
      const client = new Anthropic({ apiKey: "sk-unknown", baseURL })
      const error = await fails(client.messages.create({ model: "x", max_tokens: 5, messages: [] }))
      assert.instanceOf(error, AuthenticationError)
      assert.equal(error.type, "authentication_error")
      assert.match(error.apiMessage ?? "", /API key/u)
      assert.include(error.message, error.apiMessage ?? "?")
      assert.match(error.requestID ?? "", /^[0-9a-f]{32}$/u)
    }
  })

  it("is shown by Anthropic's client when a stream is refused", async () => {
    const client = new Anthropic({ apiKey: gateway.key, baseURL: gateway.origin, maxRetries: 0 })
    const stream = client.messages.stream({ model: "nope", max_tokens: 5, messages: [] })
    const error = await fails(stream.finalText())
    assert.include(error.message, "nope")
    assert.include(error.message, '"type":"not_found_error"')
  })

  it("has Google's error member on Google's routes, and Google's client shows its message", async () => {
    const problem = await bodyOf(gateway.post(`${gemini}:generateContent`, []))
    assert.equal(problem.code, 2001)
    assert.deepEqual(problem.error, {
      code: 400,
      message: problem.detail,
      status: "INVALID_ARGUMENT"
    })
    const client = new GoogleGenAI({
      apiKey: gateway.key,
      httpOptions: { baseUrl: `${gateway.origin}/vendors/google` }
    })
    const error = await fails(client.models.generateContent({ model: "nope", contents: "Hi" }))
    assert.instanceOf(error, ApiError)
    assert.include(error.message, "The model nope is not offered here")
    const inner = JSON.parse(JSON.parse(error.message).error.message)
    assert.deepInclude(inner.error, { code: 404, status: "NOT_FOUND" })
  })

  const statuses: ReadonlyArray<readonly [number, string, string]> = [
    [401, "authentication_error", "UNAUTHENTICATED"],
    [404, "not_found_error", "NOT_FOUND"]
  ]
  for (const [status, ofAnthropic, ofGoogle] of statuses) {
    it(`names ${status} as these vendors do`, async () => {
      const headers = { authorization: status === 401 ? "Bearer sk-no" : `Bearer ${gateway.key}` }
      const path = status === 404 ? "nowhere" : "v1/models"
      const own = await get(`/vendors/anthropic/${path}`, headers)
      const other = await get(`/vendors/google/${path}`, headers)
      assert.deepEqual([own.status, other.status], [status, status])
      assert.equal((await bodyOf(own)).error.type, ofAnthropic)
      assert.equal((await bodyOf(other)).error.status, ofGoogle)
    })
  }
})

/** docs/reference/passthrough.md#lists-of-models */
describe("a list of models", options, () => {
  it("has the models that may be called here with their prices, and no private model of the operator", async () => {
    openai.script = (_, response) =>
      json(response, 200, {
        object: "list",
        data: ["gpt-4o", "gpt-4o-2024-08-06", "ft:gpt-4o-mini:acme::x", "computer-use-preview"].map(
          (id) => ({
            id,
            object: "model",
            owned_by: "acme"
          })
        )
      })
    for (const path of ["/v1/models", "/vendors/openai/v1/models"]) {
      const list = await bodyOf(get(path))
      assert.equal(list.object, "list")
      // The names of other vendors' models contain a slash and exist only at /v1
      const [own, others] = [false, true].map((isOther) =>
        list.data.map(({ id }) => id).filter((id) => id.includes("/") === isOther)
      )
      assert.equal(others?.includes("deepseek/deepseek-chat"), path === "/v1/models")
      assert.deepEqual(own, ["gpt-4o", "gpt-4o-2024-08-06"])
      const { input, output, per } = list.data[0]!.price
      assert.equal(per, "million_tokens")
      for (const amount of [input, output]) assert.match(amount, /^\d+\.\d{2,6}$/u)
    }
  })

  it("is the same for Anthropic and Google, in their forms", async () => {
    anthropic.script = (_, response) =>
      json(response, 200, {
        data: ["claude-haiku-4-5-20251001", "claude-private"].map((id) => ({ type: "model", id })),
        has_more: false
      })
    const claude = await bodyOf(get("/vendors/anthropic/v1/models"))
    assert.deepEqual(
      claude.data.map(({ id }) => id),
      ["claude-haiku-4-5-20251001"]
    )
    assert.isFalse(claude.has_more)
    google.script = (_, response) =>
      json(response, 200, {
        models: ["models/gemini-2.5-flash", "models/private"].map((name) => ({ name })),
        nextPageToken: "next"
      })
    const list = await bodyOf(get("/vendors/google/v1beta/models"))
    assert.equal(list.nextPageToken, "next")
    assert.deepEqual(
      list.models.map(({ name }) => name),
      ["models/gemini-2.5-flash"]
    )
    assert.isString(list.models[0]!.price.input)
  })

  it("answers 404 for a model that may not be called here, even if the vendor has it", async () => {
    openai.script = (_, response) =>
      json(response, 200, { id: "computer-use-preview", object: "model" })
    const closed = await get("/v1/models/computer-use-preview")
    assert.equal(closed.status, 404)
    assert.equal((await bodyOf(closed)).code, 2006)
    openai.script = (_, response) => json(response, 200, { id: "gpt-4o", object: "model" })
    const open = await bodyOf(get("/v1/models/gpt-4o"))
    assert.equal(open.id, "gpt-4o")
    assert.isString(open.price.output)
  })

  it("has only the models that the key allows", async () => {
    const keys = "/manage/v1/api-keys"
    const fields = { name: "some", scopes: ["inference"] }
    const allowed_models = ["gpt-4o", "deepseek-chat", "claude-haiku-4-5"]
    const made = await gateway.post(keys, { ...fields, allowed_models })
    const { key } = (await made.json()) as { readonly key: string }
    const authorization = { authorization: `Bearer ${key}` }
    const list = (path: string) => bodyOf(get(path, authorization))
    openai.script = (_, response) =>
      json(response, 200, {
        data: ["gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-mini"].map((id) => ({ id, object: "model" }))
      })
    const idsOf = ({ data }: Body) => data.map(({ id }) => id)
    assert.deepEqual(idsOf(await list("/v1/models")), [
      "gpt-4o",
      "gpt-4o-2024-08-06",
      "deepseek/deepseek-chat"
    ])
    anthropic.script = (_, response) =>
      json(response, 200, {
        data: ["claude-haiku-4-5-20251001", "claude-sonnet-5"].map((id) => ({ type: "model", id }))
      })
    assert.deepEqual(idsOf(await list("/vendors/anthropic/v1/models")), [
      "claude-haiku-4-5-20251001"
    ])
    google.script = (_, response) =>
      json(response, 200, { models: [{ name: "models/gemini-2.5-flash" }] })
    assert.deepEqual((await list("/vendors/google/v1beta/models")).models, [])

    openai.script = (request, response) =>
      json(response, 200, { id: request.url.split("/").at(-1), object: "model" })
    const one = (path: string) => get(`/v1/models/${path}`, authorization)
    for (const id of ["gpt-4o-2024-08-06", "deepseek/deepseek-chat"]) {
      assert.equal((await bodyOf(one(id))).id, id)
    }
    for (const id of ["gpt-4o-mini", "deepseek%2Fdeepseek-reasoner"]) {
      const refused = await one(id)
      assert.equal(refused.status, 403)
      assert.equal((await bodyOf(refused)).code, 1004)
    }
  })

  it("relays an error of the vendor unchanged", async () => {
    openai.script = (_, response) => json(response, 500, { error: { message: "broken" } })
    const answer = await get("/v1/models")
    assert.equal(answer.status, 500)
    assert.equal(await answer.text(), '{"error":{"message":"broken"}}')
  })
})

/** docs/reference/errors.md#headers-of-errors */
describe("x-should-retry", options, () => {
  const retryOf = (answer: Response) => answer.headers.get("x-should-retry")
  const paths = [
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/nowhere",
    "/vendors/openai/v1/responses",
    messages,
    `${gemini}:generateContent`
  ]
  const wrong = { authorization: "Bearer sk-wrong", "content-type": "application/json" }
  for (const path of paths) {
    it(`is false on the problem of a final refusal at ${path}`, async () => {
      const answer = await fetch(`${gateway.origin}${path}`, {
        method: "POST",
        headers: wrong,
        body: "{}"
      })
      assert.include([401, 404], answer.status)
      assert.equal(retryOf(answer), "false")
      const malformed = await gateway.post(path, [])
      assert.include([400, 404], malformed.status)
      assert.equal(retryOf(malformed), "false")
    })
  }

  it("is absent on the gateway's own routes, and where a later request may be served", async () => {
    const own = await fetch(`${gateway.origin}/manage/v1/wallet`, { headers: wrong })
    assert.deepEqual([own.status, retryOf(own)], [401, null])
    for (const status of [408, 409, 425, 429, 500, 503]) {
      openai.script = (_, response) => json(response, status, { error: { message: "later" } })
      const later = await gateway.post("/v1/chat/completions", chat)
      assert.deepEqual([later.status, retryOf(later)], [status, null])
    }
  })

  it("is false on a final refusal that is relayed, unless the vendor said otherwise", async () => {
    const refuse = (status: number, headers: Record<string, string>): Script => {
      return (_, response) => {
        response.writeHead(status, { "content-type": "application/json", ...headers })
        response.end('{"error":{"message":"no"}}')
      }
    }
    for (const status of [400, 404, 413, 422]) {
      openai.script = refuse(status, {})
      const relayed = await gateway.post("/v1/chat/completions", chat)
      assert.deepEqual([relayed.status, retryOf(relayed)], [status, "false"])
    }
    openai.script = refuse(400, { "x-should-retry": "true" })
    assert.equal(retryOf(await gateway.post("/v1/chat/completions", chat)), "true")
  })

  it("keeps Anthropic's client from sending a wrong key more than once", async () => {
    let requests = 0
    const client = new Anthropic({
      apiKey: "sk-wrong",
      baseURL: gateway.origin,
      maxRetries: 7,
      fetch: (...sent) => {
        requests += 1
        return fetch(...sent)
      }
    })
    await fails(client.messages.create({ model: "x", max_tokens: 5, messages: [] }))
    assert.equal(requests, 1)
  })
})

/** docs/reference/passthrough.md#aliases */
describe("a key in the query, as Gemini's clients send it", options, () => {
  it("is accepted on Google's routes, and neither forwarded nor logged", async () => {
    for (const query of [`key=${gateway.key}`, `alt=json&key=${gateway.key}&a=1`]) {
      const answer = await fetch(`${gateway.origin}${gemini}:generateContent?${query}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(contents)
      })
      assert.equal(answer.status, 200)
      assert.notInclude(google.seen.at(-1)!.url, "key")
      assert.notInclude(JSON.stringify(google.seen.at(-1)), gateway.key)
    }
    assert.match(google.seen.at(-1)!.url, /\?alt=json&a=1$/u)
    const list = await fetch(`${gateway.origin}/vendors/google/v1beta/models?key=${gateway.key}`)
    assert.equal(list.status, 200)
    await gateway.settled()
    assert.notInclude(gateway.logs.join("\n"), gateway.key)
  })

  it("is ignored on other routes and beside a header", async () => {
    const openAi = await fetch(`${gateway.origin}/v1/models?key=${gateway.key}`)
    assert.equal((await bodyOf(openAi)).code, 1001)
    const both = await get(`/vendors/google/v1beta/models?key=${gateway.key}`, {
      authorization: "Bearer sk-unknown"
    })
    assert.equal(both.status, 401)
    const wrong = await fetch(`${gateway.origin}/vendors/google/v1beta/models?key=sk-unknown`)
    const problem = await bodyOf(wrong)
    assert.equal(problem.code, 1002)
    assert.notInclude(JSON.stringify(problem), "sk-unknown")
  })
})
