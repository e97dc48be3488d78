import Anthropic, { AuthenticationError } from "@anthropic-ai/sdk"
import { ApiError, GoogleGenAI } from "@google/genai"
import { request } from "node:http"
import type { IncomingMessage } from "node:http"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { anthropicScript, mockAnthropic } from "../../support/mockAnthropic.ts"
import { geminiScript, mockGemini } from "../../support/mockGemini.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

let openai: MockVendor
let anthropic: MockVendor
let google: MockVendor
let gateway: TestGateway

beforeAll(async () => {
  openai = await mockOpenAi()
  anthropic = await mockAnthropic()
  google = await mockGemini()
  gateway = await startGateway({
    OPENAI_API_KEY: "sk-vendor-openai",
    OPENAI_BASE_URL: `${openai.origin}/v1`,
    ANTHROPIC_API_KEY: "sk-vendor-anthropic",
    ANTHROPIC_BASE_URL: anthropic.origin,
    GEMINI_API_KEY: "AIza-vendor-gemini",
    GEMINI_BASE_URL: google.origin
  })
})
afterAll(async () => {
  await gateway.stop()
  for (const vendor of [openai, anthropic, google]) await vendor.close()
})
beforeEach(() => {
  for (const vendor of [openai, anthropic, google]) vendor.seen.length = 0
  openai.script = openAiScript
  anthropic.script = anthropicScript
  google.script = geminiScript
})

const fails = (call: PromiseLike<unknown>): Promise<Error> =>
  Promise.resolve(call).then(
    () => {
      throw new Error("expected a failure")
    },
    (error: Error) => error
  )

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway.origin}${path}`, {
    headers: { authorization: `Bearer ${gateway.key}`, ...headers }
  })

/** The members that the tests read. */
interface Body {
  readonly code: number
  readonly type: string
  readonly detail: string
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
const contents = { contents: [{ parts: [{ text: "Hi" }] }] }

/** docs/reference/errors.md#error-members-of-the-vendors */
describe("a problem in the dialect of its route", options, () => {
  it("has Anthropic's member on Anthropic's routes, and its client shows the message", async () => {
    const problem = await bodyOf(gateway.post(messages, { max_tokens: 5, messages: [] }))
    assert.equal(problem.code, 2001)
    assert.equal(problem.type, "/docs/errors#2001")
    assert.deepEqual(problem.error, {
      type: "invalid_request_error",
      message: problem.detail
    })
    const client = new Anthropic({
      apiKey: "sk-unknown",
      baseURL: `${gateway.origin}/vendors/anthropic`,
      maxRetries: 0
    })
    const error = await fails(client.messages.create({ model: "x", max_tokens: 5, messages: [] }))
    assert.instanceOf(error, AuthenticationError)
    assert.equal(error.type, "authentication_error")
    assert.match(error.message, /API key/u)
  })

  it("has Google's member on Google's routes, and its client shows the message", async () => {
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
  it("has what may be called here, with its price, and no private model of the operator", async () => {
    openai.script = (_, response) =>
      json(response, 200, {
        object: "list",
        data: ["gpt-4o", "gpt-4o-2024-08-06", "ft:gpt-4o-mini:acme::x", "whisper-1"].map((id) => ({
          id,
          object: "model",
          owned_by: "acme"
        }))
      })
    for (const path of ["/v1/models", "/vendors/openai/v1/models"]) {
      const list = await bodyOf(get(path))
      assert.equal(list.object, "list")
      assert.deepEqual(
        list.data.map(({ id }) => id),
        ["gpt-4o", "gpt-4o-2024-08-06"]
      )
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

  it("a model that may not be called here is 404, whatever the vendor has of it", async () => {
    openai.script = (_, response) => json(response, 200, { id: "whisper-1", object: "model" })
    const closed = await get("/v1/models/whisper-1")
    assert.equal(closed.status, 404)
    assert.equal((await bodyOf(closed)).code, 2006)
    openai.script = (_, response) => json(response, 200, { id: "gpt-4o", object: "model" })
    const open = await bodyOf(get("/v1/models/gpt-4o"))
    assert.equal(open.id, "gpt-4o")
    assert.isString(open.price.output)
  })

  it("an error of the vendor is relayed as it is", async () => {
    openai.script = (_, response) => json(response, 500, { error: { message: "broken" } })
    const answer = await get("/v1/models")
    assert.equal(answer.status, 500)
    assert.equal(await answer.text(), '{"error":{"message":"broken"}}')
  })
})

/** docs/reference/passthrough.md#streams */
describe("a WebSocket handshake", options, () => {
  const handshake = {
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="
  }
  for (const path of ["/v1/realtime?model=gpt-4o", "/v1/models", "/vendors/openai/v1/responses"]) {
    it(`to ${path} is refused with a readable reason`, async () => {
      const answer = await get(path, handshake)
      const problem = await bodyOf(answer)
      assert.equal(answer.status, 404)
      assert.equal(problem.code, 2006)
      assert.match(problem.detail, /WebSocket/u)
      assert.equal(openai.seen.length, 0)
    })
  }
})

describe("a WebSocket client", options, () => {
  it("that offers to upgrade the connection reads the same refusal", async () => {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${gateway.key}`,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="
      }
      request(`${gateway.origin}/v1/realtime`, { headers }, resolve)
        .on("upgrade", () => reject(new Error("upgraded")))
        .on("error", reject)
        .end()
    })
    const body = Buffer.concat(await answer.toArray()).toString("utf8")
    assert.equal(answer.statusCode, 404)
    assert.match(JSON.parse(body).detail, /WebSocket/u)
  })
})

/** docs/reference/passthrough.md#aliases */
describe("a key in the query, as Gemini's clients send it", options, () => {
  it("is accepted on Google's routes, and goes no further", async () => {
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

  it("is not read elsewhere, nor beside a header", async () => {
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
