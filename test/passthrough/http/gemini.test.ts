import { ApiError, FunctionCallingConfigMode, GoogleGenAI } from "@google/genai"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { fails } from "../../support/fails.ts"
import { geminiEvents, geminiScript, mockGemini } from "../../support/mockGemini.ts"
import { events, json } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"
import { until } from "../../support/until.ts"

const clientOf = ({ key, origin }: TestGateway) =>
  new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: `${origin}/vendors/google` } })

const ask = { model: "gemini-2.5-flash", contents: "Hi ".repeat(1000) }
const parameters = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 2 } },
  required: ["city", "days"]
}

describe("the @google/genai package, unchanged", () => {
  let mock: MockVendor
  let gateway: TestGateway
  let client: GoogleGenAI

  beforeAll(async () => {
    mock = await mockGemini()
    gateway = await startGateway({
      GEMINI_API_KEY: "AIza-vendor-gemini",
      // The base URL contains the version, as some operators write it; the path's version is used
      GEMINI_BASE_URL: `${mock.origin}/v1beta`
    })
    client = clientOf(gateway)
  })
  afterAll(async () => {
    await gateway.stop()
    await mock.close()
  })
  beforeEach(() => {
    mock.seen.length = 0
    mock.script = geminiScript
  })

  const newest = async () => {
    await gateway.settled()
    return (await gateway.calls())[0]!
  }

  it("generates with its key in x-goog-api-key, and the vendor receives the service's key", async () => {
    const answer = await client.models.generateContent(ask)
    assert.equal(answer.text, "Hello there")
    const { headers, url } = mock.seen[0]!
    assert.match(url, /^\/v1(?:beta)?\/models\/gemini-2\.5-flash:generateContent$/)
    assert.equal(headers["x-goog-api-key"], "AIza-vendor-gemini")
    assert.notInclude(JSON.stringify(headers), gateway.key)
    const call = await newest()
    assert.deepInclude(call.usage, {
      inputTokens: 1000,
      cachedInputTokens: 400,
      outputTokens: 500,
      reasoningTokens: 100,
      counted: false
    })
  })

  it("may ask for either version of the API", async () => {
    for (const apiVersion of ["v1beta", "v1"]) {
      const config = { httpOptions: { apiVersion } }
      await client.models.generateContent({ ...ask, config })
      assert.match(mock.seen.at(-1)!.url, new RegExp(`^/${apiVersion}/models/`))
    }
  })

  it("lists models", async () => {
    const names: Array<string | undefined> = []
    for await (const model of await client.models.list()) names.push(model.name)
    assert.deepEqual(names, ["models/gemini-2.5-flash"])
  })

  it("streams, and the cumulative usage of the stream is charged, once", async () => {
    await client.models.generateContent(ask)
    const whole = await newest()
    let text = ""
    for await (const chunk of await client.models.generateContentStream(ask)) text += chunk.text
    assert.equal(text, "Hello there")
    assert.include(mock.seen.at(-1)!.url, ":streamGenerateContent?alt=sse")
    assert.equal((await newest()).captured, whole.captured)
  })

  it("embeds, and is charged by the vendor's count of tokens or, without one, by four bytes a token", async () => {
    const embed = { model: "gemini-embedding-001", contents: ["Hi", "there"] }
    const embeddings = [{ values: [0.5] }, { values: [0.25] }]
    mock.script = (_, response) =>
      json(response, 200, { embeddings, usageMetadata: { promptTokenCount: 5 } })
    const answer = await client.models.embedContent(embed)
    assert.deepEqual(
      answer.embeddings?.map((it) => it.values),
      [[0.5], [0.25]]
    )
    assert.include(mock.seen.at(-1)!.url, "/models/gemini-embedding-001:batchEmbedContents")
    const reported = await newest()
    assert.deepInclude(reported.usage, { inputTokens: 5, outputTokens: 0, counted: false })
    // 15 credits for a million tokens
    assert.equal(reported.captured, 75n)
    mock.script = (_, response) => json(response, 200, { embeddings })
    await client.models.embedContent(embed)
    const counted = await newest()
    assert.isTrue(counted.usage!["counted"])
    assert.isAbove(Number(counted.captured), 75)
  })

  it("may not ask for a response without its usage figures", async () => {
    const post = (method: string, query: string, headers: Record<string, string> = {}) =>
      fetch(`${gateway.origin}/vendors/google/v1beta/models/gemini-2.5-flash:${method}?${query}`, {
        method: "POST",
        headers: { "x-goog-api-key": gateway.key, "content-type": "application/json", ...headers },
        body: JSON.stringify({ contents: [{ parts: [{ text: "Hi" }] }] })
      })
    for (const [query, name] of [
      ["fields=candidates", "fields"],
      ["$fields=candidates", "$fields"],
      ["alt=sse&%24fields=candidates", "$fields"],
      ["alt=proto", "alt"],
      ["alt=json&$alt=media", "$alt"],
      ["callback=f", "callback"],
      ["$ct=application/x-protobuf", "$ct"]
    ]) {
      for (const method of ["generateContent", "streamGenerateContent"]) {
        const response = await post(method, query!)
        const { code, errors } = (await response.json()) as {
          code: number
          errors: ReadonlyArray<{ pointer: string }>
        }
        assert.deepEqual(
          [response.status, code, errors[0]?.pointer],
          [400, 2001, `#/query/${name}`],
          query
        )
      }
    }
    assert.isEmpty(mock.seen)
    const plain = await post("generateContent", "alt=json&prettyPrint=false&$alt=json", {
      "x-goog-fieldmask": "candidates"
    })
    assert.equal(plain.status, 200)
    assert.notProperty(mock.seen[0]!.headers, "x-goog-fieldmask")
    // As Google's clients of its other languages send it
    const encoded = await post("generateContent", "%24alt=json%3Benum-encoding%3Dint")
    assert.equal(encoded.status, 200)
    const free = await post("countTokens", "fields=totalTokens")
    assert.equal(free.status, 200)
  })

  it("calls functions", async () => {
    const tools = [{ functionDeclarations: [{ name: "f", parametersJsonSchema: parameters }] }]
    const answer = await client.models.generateContent({ ...ask, config: { tools } })
    assert.deepInclude(answer.functionCalls![0], { name: "f", args: { a: 1 } })
  })

  it("shows the gateway's message in its errors, and the upstream's in the upstream's errors", async () => {
    const unpriced = await fails(client.models.generateContent({ ...ask, model: "gemini-nope" }))
    assert.instanceOf(unpriced, ApiError)
    assert.equal((unpriced as ApiError).status, 404)
    assert.include(unpriced.message, "gemini-nope is not offered here: it has no price")
    mock.script = (_, response) =>
      json(response, 400, {
        error: { code: 400, message: "bad top_k", status: "INVALID_ARGUMENT" }
      })
    const refused = await fails(client.models.generateContent(ask))
    assert.equal((refused as ApiError).status, 400)
    assert.include(refused.message, "bad top_k")
  })

  it("cancels a stream, and the upstream's connection is closed", async () => {
    const withoutThoughts = geminiEvents().map((event) =>
      event.replace('"thoughtsTokenCount":100', '"thoughtsTokenCount":0')
    )
    mock.script = (_, response) =>
      events(response, withoutThoughts, (index) =>
        index < 2 ? Promise.resolve() : new Promise(() => {})
      )
    const controller = new AbortController()
    // A thinking model's stream is read to the end: test/passthrough/http/abandonedStreams.test.ts
    const config = { abortSignal: controller.signal, thinkingConfig: { thinkingBudget: 0 } }
    const stream = await client.models.generateContentStream({ ...ask, config })
    await fails(
      (async () => {
        for await (const _ of stream) controller.abort()
      })()
    )
    await until(() => mock.seen[0]!.aborted !== undefined, { what: "the upstream is aborted" })
    const call = await newest()
    assert.isTrue(call.usage!["counted"])
    assert.equal(call.usage!["inputTokens"], 1000)
  })

  it("times out on its own", async () => {
    mock.script = () => {}
    // Long enough for the call to have reached the upstream
    const config = { httpOptions: { timeout: 2000 } }
    const error = await fails(client.models.generateContent({ ...ask, config }))
    assert.match(`${error.name} ${error.message}`, /abort|timeout/iu)
    await until(() => mock.seen[0]!.aborted !== undefined, { what: "the upstream is aborted" })
    assert.equal(mock.seen.length, 1)
    const call = await newest()
    assert.equal(call.outcome, "settled")
    // The prompt, one token per four bytes
    const inputTokens = Math.ceil(mock.seen[0]!.body.length / 4)
    assert.deepEqual(call.usage, { inputTokens, outputTokens: 0, counted: true })
  })

  it("retries when it is configured to; the gateway never does", async () => {
    let calls = 0
    mock.script = (request, response) => {
      calls += 1
      return calls === 1
        ? json(response, 503, { error: { code: 503, message: "once", status: "UNAVAILABLE" } })
        : geminiScript(request, response)
    }
    const once = await fails(client.models.generateContent(ask))
    assert.equal((once as ApiError).status, 503)
    assert.equal(calls, 1)
    calls = 0
    const retryOptions = { attempts: 2, initialDelay: 0.001 }
    const config = { httpOptions: { retryOptions } }
    assert.equal((await client.models.generateContent({ ...ask, config })).text, "Hello there")
    assert.equal(calls, 2)
    await gateway.settled()
    assert.equal(await gateway.drift(), 0)
  })
})

describe("the @google/genai package in the sandbox", () => {
  const whole =
    "This answer comes from the built-in simulator: set a vendor key to reach the real model."
  let gateway: TestGateway
  let client: GoogleGenAI

  beforeAll(async () => {
    gateway = await startGateway({})
    client = clientOf(gateway)
  })
  afterAll(() => gateway.stop())

  it("gets a text and a stream, as many candidates as requested, cut off at its limit", async () => {
    assert.equal((await client.models.generateContent(ask)).text, whole)
    const config = { maxOutputTokens: 3, candidateCount: 2 }
    const answer = await client.models.generateContent({ ...ask, config })
    assert.deepEqual(
      answer.candidates!.map(({ finishReason, index }) => `${index} ${finishReason}`),
      ["0 MAX_TOKENS", "1 MAX_TOKENS"]
    )
    assert.equal(answer.usageMetadata!.candidatesTokenCount, 6)
    let text = ""
    for await (const chunk of await client.models.generateContentStream(ask)) text += chunk.text
    assert.equal(text, whole)
  })

  it("calls the function that it forces, and gets a text about the function's result", async () => {
    const tools = [
      { functionDeclarations: [{ name: "weather", parametersJsonSchema: parameters }] }
    ]
    const functionCallingConfig = { mode: FunctionCallingConfigMode.ANY }
    const config = { tools, toolConfig: { functionCallingConfig } }
    const answer = await client.models.generateContent({ ...ask, config })
    const args = { city: "simulated", days: 2 }
    assert.deepInclude(answer.functionCalls![0], { name: "weather", args })
    const parts = [{ functionResponse: { name: "weather", response: { output: "sunny" } } }]
    const contents = [
      { role: "user", parts: [{ text: "Hi" }] },
      answer.candidates![0]!.content!,
      { role: "user", parts }
    ]
    assert.equal((await client.models.generateContent({ ...ask, contents, config })).text, whole)
  })

  it("gets the vendor's 404 for an unknown model, and the known ones", async () => {
    const error = await fails(client.models.get({ model: "nope" }))
    assert.equal((error as ApiError).status, 404)
    assert.include(error.message, "models/nope is not found")
    const { name } = await client.models.get({ model: "gemini-2.5-flash" })
    assert.equal(name, "models/gemini-2.5-flash")
    assert.isAbove((await client.models.countTokens(ask)).totalTokens!, 0)
  })
})
