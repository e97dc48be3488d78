import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { events, json, mockVendor } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { jsonOf, startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

/** Tools that the vendor runs and charges. docs/reference/wallet.md#tools-that-the-vendor-runs */
let upstream: MockVendor
let gateway: TestGateway

beforeAll(async () => {
  upstream = await mockVendor(() => {})
  gateway = await startGateway(
    {
      OPENAI_API_KEY: "sk-vendor-openai",
      OPENAI_BASE_URL: upstream.origin,
      ANTHROPIC_API_KEY: "sk-vendor-anthropic",
      ANTHROPIC_BASE_URL: upstream.origin,
      GEMINI_API_KEY: "vendor-key-gemini",
      GEMINI_BASE_URL: upstream.origin
    },
    100_000n
  )
})
afterAll(async () => {
  await gateway.stop()
  await upstream.close()
})
beforeEach(() => {
  upstream.seen.length = 0
})

const newest = async () => {
  await gateway.settled()
  assert.equal(await gateway.drift(), 0)
  return (await gateway.calls())[0]!
}

const search = (query: string) => ({ type: "web_search_call", action: { type: "search", query } })
const opened = { type: "web_search_call", action: { type: "open_page", url: "https://x" } }
const responsesUsage = { input_tokens: 1000, output_tokens: 100 }
/** 1000 tokens at 250 and 100 at 1000 credits a million, in micro-credits. */
const tokensOfGpt4o = 250_000n + 100_000n
const asked = { model: "gpt-4o", input: "Hi", max_output_tokens: 100 }
const web = { type: "web_search" }

describe("tools that the vendor runs", () => {
  it("OpenAI's searches are charged by use, pages that are opened are not", async () => {
    upstream.script = (_, response) =>
      json(response, 200, {
        model: "gpt-4o",
        output: [search("a"), opened, search("b"), { type: "message", content: [] }],
        usage: responsesUsage
      })
    await (await gateway.post("/v1/responses", { ...asked, tools: [web] })).text()
    const call = await newest()
    assert.equal(call.captured, tokensOfGpt4o + 2_000_000n)
    assert.deepEqual(call.usage?.["tools"], { web_search: 2 })
  })

  it("OpenAI's code interpreter is charged by container, however often it ran there", async () => {
    const ran = (id: string) => ({ type: "code_interpreter_call", container_id: id, code: "1" })
    upstream.script = (_, response) =>
      json(response, 200, {
        model: "gpt-4o",
        output: [ran("cntr_a"), ran("cntr_a"), ran("cntr_b")],
        usage: responsesUsage
      })
    const tools = [{ type: "code_interpreter", container: { type: "auto" } }]
    await (await gateway.post("/v1/responses", { ...asked, tools })).text()
    const call = await newest()
    assert.equal(call.captured, tokensOfGpt4o + 6_000_000n)
    assert.deepEqual(call.usage?.["tools"], { code_interpreter: 2 })
    for (const container of ["cntr_a", { type: "auto", memory_limit: "4g" }]) {
      const refused = await gateway.post("/v1/responses", {
        ...asked,
        tools: [{ type: "code_interpreter", container }]
      })
      assert.equal(refused.status, 400)
      assert.include(JSON.stringify(await jsonOf(refused)), "#/tools/0/container")
    }
    assert.equal(upstream.seen.length, 1)
  })

  it("in a stream the last event counts, also one that is too long to be kept", async () => {
    const output = [search("a"), { type: "message", content: [{ text: "x".repeat(100_000) }] }]
    const completed = {
      type: "response.completed",
      response: { model: "gpt-4o", output, usage: responsesUsage }
    }
    upstream.script = (_, response) =>
      events(response, [
        'data: {"type":"response.output_text.delta","delta":"x"}\n\n',
        `data: ${JSON.stringify(completed)}\n\n`
      ])
    const body = { ...asked, stream: true, tools: [web] }
    await (await gateway.post("/v1/responses", body)).text()
    const call = await newest()
    assert.equal(call.captured, tokensOfGpt4o + 1_000_000n)
    assert.deepEqual(call.usage?.["tools"], { web_search: 1 })
  })

  it("Anthropic's searches are those that it reports", async () => {
    upstream.script = (_, response) =>
      json(response, 200, {
        model: "claude-haiku-4-5",
        usage: {
          input_tokens: 1000,
          output_tokens: 100,
          server_tool_use: { web_search_requests: 3, web_fetch_requests: 2 }
        }
      })
    const tool = { type: "web_search_20250305", name: "web_search", max_uses: 5 }
    const body = { model: "claude-haiku-4-5", max_tokens: 100, messages: [], tools: [tool] }
    await (await gateway.post("/v1/messages", body)).text()
    const call = await newest()
    // Page fetching costs only the tokens of the page
    assert.equal(call.captured, 100_000n + 50_000n + 3_000_000n)
    assert.deepEqual(call.usage?.["tools"], { web_search: 3, web_fetch: 2 })
  })

  it.each([
    ["gemini-2.5-flash", 3_500_000n],
    ["gemini-3-flash-preview", 2_800_000n]
  ])(
    "%s: grounding is charged by the prompt before Gemini 3, then by the query",
    async (model, cost) => {
      upstream.script = (_, response) =>
        json(response, 200, {
          modelVersion: model,
          candidates: [{ groundingMetadata: { webSearchQueries: ["a", "b"] } }],
          usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 1000 }
        })
      const body = { contents: [], tools: [{ googleSearch: {} }] }
      await (await gateway.post(`/vendors/google/v1/models/${model}:generateContent`, body)).text()
      const call = await newest()
      const output = model === "gemini-2.5-flash" ? 250_000n : 300_000n
      assert.equal(call.captured, output + cost)
    }
  )

  it("the hold has the whole context of the model, and the uses that the request allows", async () => {
    upstream.script = (_, response) =>
      json(response, 200, { model: "gpt-4o", output: [], usage: responsesUsage })
    const held = async (more: object) => {
      await (await gateway.post("/v1/responses", { ...asked, ...more })).text()
      return (await newest()).held
    }
    const tokens = 128_000n * 250n + 100n * 1000n
    assert.equal(await held({ tools: [web] }), tokens + 10_000_000n)
    assert.equal(await held({ tools: [web], max_tool_calls: 3 }), tokens + 3_000_000n)
  })

  it("a stream that is left is read on for the tools that it may have used", async () => {
    let finish = () => {}
    const finished = new Promise<void>((resolve) => (finish = resolve))
    upstream.script = async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write('data: {"type":"response.output_text.delta","delta":"x"}\n\n')
      await finished
      const done = { model: "gpt-4o", output: [search("a")], usage: responsesUsage }
      response.end(`data: ${JSON.stringify({ type: "response.completed", response: done })}\n\n`)
    }
    const leave = new AbortController()
    const answer = await gateway.post(
      "/v1/responses",
      { ...asked, stream: true, tools: [web] },
      {},
      { signal: leave.signal }
    )
    await answer.body!.getReader().read()
    leave.abort()
    finish()
    assert.equal((await newest()).captured, tokensOfGpt4o + 1_000_000n)
  })

  it("a tool without a price is refused by its name", async () => {
    const refused = async (tool: object) => {
      const answer = await gateway.post("/v1/responses", { ...asked, tools: [tool] })
      assert.equal(answer.status, 400)
      return JSON.stringify(await jsonOf(answer))
    }
    const files = await refused({ type: "file_search", vector_store_ids: ["vs_1"] })
    assert.include(files, "The vendor charges for each use of file_search")
    assert.include(files, "leave it out of tools")
    assert.include(await refused({ type: "constructor" }), "each use of constructor")
    assert.equal(upstream.seen.length, 0)
  })
})
