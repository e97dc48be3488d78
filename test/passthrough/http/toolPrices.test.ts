import { assert, describe, it } from "vitest"
import { events, json, mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"

/** Tools that the vendor runs and charges for. docs/reference/wallet.md#tools-that-the-vendor-runs */

const upstream = await upstreamOfTests(mockVendor(() => {}))
const gateway = await gatewayOfTests(
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

const search = (query: string) => ({ type: "web_search_call", action: { type: "search", query } })
const opened = { type: "web_search_call", action: { type: "open_page", url: "https://x" } }
const responsesUsage = { input_tokens: 1000, output_tokens: 100 }
/** 1000 tokens at 250 and 100 at 1000 credits a million, in micro-credits. */
const tokensOfGpt4o = 250_000n + 100_000n
const asked = { model: "gpt-4o", input: "Hi", max_output_tokens: 100 }
const web = { type: "web_search" }
const noImages = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
const twoImages = {
  input_tokens: 1550,
  input_tokens_details: { image_tokens: 1521, text_tokens: 29 },
  cached_tokens: 30,
  cached_tokens_details: { cached_image_tokens: 21, cached_text_tokens: 9 },
  output_tokens: 1030,
  output_tokens_details: { image_tokens: 1000, text_tokens: 30 },
  total_tokens: 2580
}

describe("tools that the vendor runs", () => {
  it("OpenAI's searches are charged by use, and opened pages are free", async () => {
    upstream.script = (_, response) =>
      json(response, 200, {
        model: "gpt-4o",
        output: [search("a"), opened, search("b"), { type: "message", content: [] }],
        usage: responsesUsage
      })
    await (await gateway.post("/v1/responses", { ...asked, tools: [web] })).text()
    const call = await gateway.newest()
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
    const call = await gateway.newest()
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

  it("OpenAI's billed queries count, not the searches that the output shows", async () => {
    upstream.script = (_, response) =>
      json(response, 200, {
        model: "gpt-4o",
        output: [search("a")],
        tool_usage: { image_gen: noImages, web_search: { num_requests: 4 } },
        usage: responsesUsage
      })
    await (await gateway.post("/v1/responses", { ...asked, tools: [web] })).text()
    const call = await gateway.newest()
    assert.equal(call.captured, tokensOfGpt4o + 4_000_000n)
    assert.deepEqual(call.usage?.["tools"], { web_search: 4 })
  })

  it("OpenAI's searches of files are charged by use", async () => {
    const found = { type: "file_search_call", queries: ["a", "b"], results: null }
    upstream.script = (_, response) =>
      json(response, 200, { model: "gpt-4o", output: [found, found], usage: responsesUsage })
    const tools = [{ type: "file_search", vector_store_ids: ["vs_1"] }]
    await (await gateway.post("/v1/responses", { ...asked, max_tool_calls: 2, tools })).text()
    const call = await gateway.newest()
    assert.equal(call.held, 128_000n * 250n + 100n * 1000n + 500_000n)
    assert.equal(call.captured, tokensOfGpt4o + 500_000n)
    assert.deepEqual(call.usage?.["tools"], { file_search: 2 })
  })

  it.each([false, true])(
    "pictures inside responses are charged by the tokens of the image model, stream: %s",
    async (stream) => {
      const drawn = { type: "image_generation_call", result: "x".repeat(3_000_000) }
      const made = {
        model: "gpt-4o",
        output: [drawn],
        tool_usage: { image_gen: twoImages, web_search: { num_requests: 0 } },
        usage: responsesUsage
      }
      upstream.script = (_, response) =>
        stream
          ? events(response, [
              `data: ${JSON.stringify({ type: "response.completed", response: made })}\n\n`
            ])
          : json(response, 200, made)
      const tools = [{ type: "image_generation", model: "gpt-image-2.6-sunburst", quality: "high" }]
      const body = { ...asked, stream, max_tool_calls: 2, tools }
      const answer = await (await gateway.post("/v1/responses", body)).text()
      assert.isAbove(answer.length, 3_000_000)
      const call = await gateway.newest()
      assert.equal(call.held, 128_000n * 250n + 100n * 1000n + 200_000_000n)
      // Text 20 at 500 and 9 at 125, pictures 1500 at 800 and 21 at 200, output 1030 at 3000 credits a million
      const images = 10_000n + 1_125n + 1_200_000n + 4_200n + 3_090_000n
      assert.equal(call.captured, tokensOfGpt4o + images)
      assert.deepEqual(call.usage?.["tools"], {
        image_generation: 1,
        image_generation_input_tokens: 20,
        image_generation_cached_input_tokens: 9,
        image_generation_image_input_tokens: 1500,
        image_generation_cached_image_input_tokens: 21,
        image_generation_output_tokens: 1030
      })
    }
  )

  it("a picture whose tokens are not reported costs its hold, and one without tokens costs nothing", async () => {
    const captured = async (tool_usage: object | undefined) => {
      const output = [{ type: "image_generation_call", status: "failed", result: null }]
      upstream.script = (_, response) =>
        json(response, 200, { model: "gpt-4o", output, tool_usage, usage: responsesUsage })
      const body = { ...asked, tools: [{ type: "image_generation" }] }
      await (await gateway.post("/v1/responses", body)).text()
      return (await gateway.newest()).captured
    }
    assert.equal(await captured(undefined), tokensOfGpt4o + 100_000_000n)
    assert.equal(await captured({ image_gen: noImages }), tokensOfGpt4o)
  })

  it.each([
    ["model", "gpt-image-1.5"],
    ["quality", "max"],
    ["output_format", "svg"]
  ])("a picture with an unpriced %s is refused", async (member, value) => {
    const tools = [{ type: "image_generation", [member]: value }]
    const refused = await gateway.post("/v1/responses", { ...asked, tools })
    assert.equal(refused.status, 400)
    const problem = JSON.stringify(await jsonOf(refused))
    assert.include(problem, `#/tools/0/${member}`)
    assert.include(problem, "any other has no price")
    assert.equal(upstream.seen.length, 0)
  })

  it("the last event of a stream counts, even if it is too long to be kept", async () => {
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
    const call = await gateway.newest()
    assert.equal(call.captured, tokensOfGpt4o + 1_000_000n)
    assert.deepEqual(call.usage?.["tools"], { web_search: 1 })
  })

  it("Anthropic's searches are charged as it reports them", async () => {
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
    const call = await gateway.newest()
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
      const call = await gateway.newest()
      const output = model === "gemini-2.5-flash" ? 250_000n : 300_000n
      assert.equal(call.captured, output + cost)
    }
  )

  const place = { maps: { title: "A pier" } }
  const page = { web: { uri: "https://x" } }
  it.each([
    ["gemini-2.5-flash", [place], ["a", "b"], { google_maps: 2 }, 2_500_000n],
    ["gemini-3-flash-preview", [place], ["a", "b"], { google_maps: 2 }, 2_800_000n],
    ["gemini-3-flash-preview", [place], undefined, { google_maps: 1 }, 1_400_000n],
    [
      "gemini-3-flash-preview",
      [page, place],
      ["a"],
      { google_search: 1, google_maps: 1 },
      2_800_000n
    ],
    ["gemini-3-flash-preview", [], undefined, undefined, 0n]
  ])("%s: Google Maps %j with the queries %j is %j", async (model, chunks, queries, uses, cost) => {
    const groundingMetadata = { groundingChunks: chunks, webSearchQueries: queries }
    upstream.script = (_, response) =>
      json(response, 200, {
        modelVersion: model,
        candidates: [{ groundingMetadata }],
        usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 1000 }
      })
    const body = { contents: [], tools: [{ googleMaps: {} }, { googleSearch: {} }] }
    await (await gateway.post(`/vendors/google/v1/models/${model}:generateContent`, body)).text()
    const call = await gateway.newest()
    const output = model === "gemini-2.5-flash" ? 250_000n : 300_000n
    assert.equal(call.captured, output + cost)
    assert.deepEqual(call.usage?.["tools"], uses)
  })

  it("the hold covers the whole context of the model and the uses that the request allows", async () => {
    upstream.script = (_, response) =>
      json(response, 200, { model: "gpt-4o", output: [], usage: responsesUsage })
    const held = async (more: object) => {
      await (await gateway.post("/v1/responses", { ...asked, ...more })).text()
      return (await gateway.newest()).held
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
    assert.equal((await gateway.newest()).captured, tokensOfGpt4o + 1_000_000n)
  })

  it("a tool without a price is refused, and the refusal names it", async () => {
    const refused = async (tool: object) => {
      const answer = await gateway.post("/v1/responses", { ...asked, tools: [tool] })
      assert.equal(answer.status, 400)
      return JSON.stringify(await jsonOf(answer))
    }
    const shell = await refused({ type: "shell", environment: { type: "container_auto" } })
    assert.include(shell, "The vendor charges for each use of shell")
    assert.include(shell, "leave it out of tools")
    assert.include(await refused({ type: "constructor" }), "each use of constructor")
    assert.equal(upstream.seen.length, 0)
  })
})
