import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { anthropicUsage } from "../../support/mockAnthropic.ts"
import { geminiUsage } from "../../support/mockGemini.ts"
import { chatCompletion, chatEvents, mockOpenAi, openAiUsage } from "../../support/mockOpenAi.ts"
import { events, json, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/reference/wallet.md#the-model-that-responded */

const flat = (vendor: string, model: string, price: string) => ({
  vendor,
  model,
  price: { per: "million_tokens", input: price, output: price },
  outputTokensMax: 1000,
  inputTokensMax: 10_000
})

const upstream = await upstreamOfTests(mockOpenAi())
const file = join(temporaryFolder("catalog"), "catalog.json")
const prices = [
  ["big", "1000"],
  ["small", "100"]
] as const
const tokenModels = ["openai", "anthropic", "google"].flatMap((vendor) =>
  prices.map(([model, price]) => flat(vendor, model, price))
)
writeFileSync(file, JSON.stringify({ tokenModels }))
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: upstream.origin,
  ANTHROPIC_API_KEY: "sk-ant-vendor",
  ANTHROPIC_BASE_URL: upstream.origin,
  GEMINI_API_KEY: "AIza-vendor-gemini",
  GEMINI_BASE_URL: upstream.origin,
  CATALOG_FILE: file
})

const body = (model: string) => ({
  model,
  max_tokens: 1000,
  messages: [{ role: "user", content: "x".repeat(1000) }]
})

/** The charge of a call and the model whose price applied; each of the mock's responses has 1500 tokens. */
const charged = async (
  path: string,
  request: unknown,
  response: unknown
): Promise<ReadonlyArray<unknown>> => {
  upstream.script = (_, out) => json(out, 200, response)
  const answer = await gateway.post(path, request)
  assert.equal(answer.status, 200)
  const { captured, model, usage } = await gateway.newest()
  return [model, captured, usage!["pricedAs"]]
}

const chat = "/v1/chat/completions"

describe("a call is settled at the price of the model that responded", () => {
  it("which a whole response of each vendor names", async () => {
    const small = [`big`, 150_000n, "small"]
    assert.deepEqual(await charged(chat, body("big"), chatCompletion("small")), small)
    const input = { model: "big", max_output_tokens: 1000, input: "x".repeat(1000) }
    const usage = { input_tokens: 1000, output_tokens: 500 }
    const responses = "/vendors/openai/v1/responses"
    assert.deepEqual(await charged(responses, input, { model: "small", usage }), small)
    const messages = "/vendors/anthropic/v1/messages"
    const message = { model: "small", usage: anthropicUsage }
    assert.deepEqual(await charged(messages, body("big"), message), small)
    const gemini = "/vendors/google/v1beta/models/big:generateContent"
    const contents = { contents: [{ parts: [{ text: "x".repeat(1000) }] }] }
    const generated = { modelVersion: "small", usageMetadata: geminiUsage }
    const asked = { ...contents, generationConfig: { maxOutputTokens: 1000 } }
    assert.deepEqual(await charged(gemini, asked, generated), small)
  })

  it("which may be a fallback that Anthropic chose, also in a stream", async () => {
    const iterations = [{ type: "message" }, { type: "fallback_message", model: "small" }]
    const start = { type: "message_start", message: { model: "big", usage: anthropicUsage } }
    const end = { type: "message_delta", usage: { output_tokens: 500, iterations } }
    const lines = [start, end].map((it) => `event: ${it.type}\ndata: ${JSON.stringify(it)}\n\n`)
    upstream.script = (_, response) => events(response, lines)
    const request = { ...body("big"), stream: true }
    await (await gateway.post("/vendors/anthropic/v1/messages", request)).text()
    const { captured, usage } = await gateway.newest()
    assert.deepEqual([captured, usage!["pricedAs"]], [150_000n, "small"])
  })

  it("which the chunks of a chat stream name", async () => {
    const lines = chatEvents(["Hel", "lo"], true).map((it) => it.replaceAll("gpt-4o", "small"))
    upstream.script = (_, response) => events(response, lines)
    await (await gateway.post(chat, { ...body("big"), stream: true })).text()
    const { captured, usage } = await gateway.newest()
    assert.deepEqual([captured, usage!["pricedAs"]], [150_000n, "small"])
  })

  it("but never above the hold", async () => {
    const request = { ...body("small"), max_tokens: 1 }
    upstream.script = (_, response) => json(response, 200, chatCompletion("big"))
    await gateway.post(chat, request)
    const { captured, held } = await gateway.newest()
    assert.equal(captured, held)
    assert.equal(held, BigInt(JSON.stringify(request).length + 1) * 100n)
  })
})

describe("a call is settled at the requested price, and counted in a metric", () => {
  const count = async (model: string) => {
    const text = await (await fetch(`${gateway.origin}/metrics`)).text()
    const line = text
      .split("\n")
      .find(
        (it) =>
          it.startsWith("gateway_other_model_responses_total{") && it.includes(`model="${model}"`)
      )
    return Number(line?.split(" ").at(-1) ?? 0)
  }

  it("when the responding model has no price", async () => {
    const before = await count("big")
    const plain = ["big", 1_500_000n, undefined]
    assert.deepEqual(await charged(chat, body("big"), chatCompletion("unheard-of")), plain)
    assert.equal(await count("big"), before + 1)
  })

  it("when the request pinned a version", async () => {
    const before = await count("big")
    const pinned = ["big-2026-01-31", 1_500_000n, undefined]
    assert.deepEqual(await charged(chat, body("big-2026-01-31"), chatCompletion("small")), pinned)
    assert.equal(await count("big"), before + 1)
  })

  it("but not when the response names the version of an alias, or no model", async () => {
    const before = await count("big")
    const plain = ["big", 1_500_000n, undefined]
    assert.deepEqual(await charged(chat, body("big"), chatCompletion("big-2026-01-31")), plain)
    assert.deepEqual(await charged(chat, body("big"), { usage: openAiUsage }), plain)
    assert.equal(await count("big"), before)
  })
})

describe("a model that is not sold", () => {
  it("is refused with the reason", async () => {
    for (const [model, reason] of [
      ["o4-mini-2025-04-16", "its vendor shut it down on 2026-10-23"],
      ["gpt-6-cyber", "only organizations that its vendor has approved may use it"],
      ["my-own", "it has no price"]
    ] as const) {
      const answer = await gateway.post(chat, body(model))
      assert.equal(answer.status, 404)
      const problem = await jsonOf(answer)
      assert.equal(problem.code, 2006)
      assert.include(problem.detail, `The model ${model} is not offered here: ${reason}`)
    }
  })
})
