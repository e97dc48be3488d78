import Anthropic from "@anthropic-ai/sdk"
import { GoogleGenAI } from "@google/genai"
import OpenAI from "openai"
import { assert, describe, it } from "vitest"
import { anthropicUsage } from "../../support/mockAnthropic.ts"
import { json } from "../../support/mockVendors.ts"
import { gatewayBeforeVendors } from "../../support/recordedVendors.ts"

const { anthropic, gateway, google, openai } = await gatewayBeforeVendors()

const options = { timeout: 120_000 }
const version = { "anthropic-version": "2023-06-01" }

/** The members that the tests read. */
interface Body {
  readonly type: string
  readonly code: number
  readonly detail: string
  readonly error: Readonly<Record<string, unknown>>
  readonly request_id: string
  readonly id: string
}

const get = async (path: string, headers: Record<string, string> = {}) => {
  const authorization = `Bearer ${gateway.key}`
  const response = await fetch(`${gateway.origin}${path}`, {
    headers: { authorization, ...headers }
  })
  return { response, body: (await response.json()) as Body }
}

const claude = { type: "model", id: "claude-sonnet-5", display_name: "Claude Sonnet 5" }

/** docs/reference/passthrough.md#lists-of-models */
describe("GET /v1/models with anthropic-version", options, () => {
  it("lists the models of /v1/messages in Anthropic's shape, for Anthropic's client", async () => {
    anthropic.script = (_, response) =>
      json(response, 200, {
        data: [claude, { ...claude, id: "claude-private" }],
        has_more: false,
        first_id: "claude-sonnet-5",
        last_id: "claude-private"
      })
    const client = new Anthropic({ apiKey: gateway.key, baseURL: gateway.origin })
    const found: Array<string> = []
    for await (const model of client.models.list({ limit: 1000 })) found.push(model.id)
    assert.deepEqual(found, ["claude-sonnet-5"])
    assert.equal(anthropic.seen.at(-1)!.url, "/v1/models?limit=1000")
    assert.equal(openai.seen.length, 0)
    openai.script = (_, response) =>
      json(response, 200, { object: "list", data: [{ id: "gpt-4o", object: "model" }] })
    const other = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.origin}/v1` })
    assert.deepEqual(
      (await other.models.list()).data.map(({ id }) => id).filter((id) => !id.includes("/")),
      ["gpt-4o"]
    )
  })

  it("shows one of them, and refuses in Anthropic's shape", async () => {
    anthropic.script = (_, response) => json(response, 200, claude)
    const one = await get("/v1/models/claude-sonnet-5", version)
    assert.deepInclude(one.body, claude)
    const { body, response } = await get("/v1/models", { ...version, authorization: "Bearer no" })
    assert.equal(response.status, 401)
    assert.deepInclude(body, {
      type: "error",
      error: { type: "authentication_error", message: body.detail }
    })
    assert.equal(response.headers.get("request-id"), body.request_id)
  })
})

/** docs/reference/passthrough.md#models-at-another-route */
describe("a model that another route serves", options, () => {
  const claudeAt = "claude-sonnet-5 speaks Anthropic Messages: use /v1/messages"
  const gptAt = "gpt-4o speaks OpenAI Chat Completions: use /v1/chat/completions"
  const geminiAt =
    "gemini-2.5-flash speaks Gemini generateContent: use /vendors/google/v1beta/models/gemini-2.5-flash:generateContent"
  const messages = [{ role: "user", content: "Hi" }]
  const refused: ReadonlyArray<readonly [path: string, model: string, detail: string]> = [
    ["/v1/chat/completions", "claude-sonnet-5", claudeAt],
    ["/v1/responses", "claude-sonnet-5", claudeAt],
    ["/v1/chat/completions", "gemini-2.5-flash", geminiAt],
    ["/v1/messages", "gpt-4o", gptAt],
    ["/v1/messages", "gpt-4o-2024-08-06", gptAt.replace("gpt-4o", "gpt-4o-2024-08-06")],
    [
      "/v1/messages",
      "text-embedding-3-small",
      "text-embedding-3-small speaks OpenAI Embeddings: use /v1/embeddings"
    ],
    ["/vendors/google/v1beta/models/gpt-4o:generateContent", "gpt-4o", gptAt],
    [
      "/v1/chat/completions",
      "text-to-image-max",
      "text-to-image-max makes images: use /v1/images/generations"
    ],
    ["/v1/responses", "image-edit-pro", "image-edit-pro makes images: use /v1/images/edits"],
    ["/v1/messages", "text-to-video-spark", "text-to-video-spark makes videos: use /v1/videos"]
  ]
  for (const [path, model, detail] of refused) {
    it(`${model} at ${path} is refused with its route, in the dialect of the path`, async () => {
      const response = await gateway.post(path, { model, max_tokens: 5, messages })
      const body = (await response.json()) as Body
      assert.equal(response.status, 404)
      assert.deepInclude(body, { code: 2006, detail })
      assert.deepInclude(body.error, { message: detail })
      const shape = path === "/v1/messages" ? "type" : path.startsWith("/v1/") ? "param" : "status"
      assert.property(body.error, shape)
      for (const vendor of [openai, anthropic, google]) assert.equal(vendor.seen.length, 0)
    })
  }

  it("is named with its route in the errors of the three vendors' clients", async () => {
    const fails = (call: PromiseLike<unknown>) =>
      Promise.resolve(call).then(
        () => assert.fail("expected a failure"),
        (error: Error) => error.message
      )
    const { key: apiKey, origin } = gateway
    const ofOpenAi = new OpenAI({ apiKey, baseURL: `${origin}/v1` })
    const chat = ofOpenAi.responses.create({ model: "claude-sonnet-5", input: "Hi" })
    assert.include(await fails(chat), claudeAt)
    const ofAnthropic = new Anthropic({ apiKey, baseURL: origin })
    const message = ofAnthropic.messages.create({
      model: "gpt-4o",
      max_tokens: 5,
      messages: [{ role: "user", content: "Hi" }]
    })
    assert.include(await fails(message), gptAt)
    const httpOptions = { baseUrl: `${origin}/vendors/google` }
    const ofGoogle = new GoogleGenAI({ apiKey, httpOptions })
    const contents = ofGoogle.models.generateContent({ model: "gpt-4o", contents: "Hi" })
    assert.include(await fails(contents), gptAt)
  })

  it("is also refused when it is looked up at /v1/models, without a request to the vendor", async () => {
    const { body, response } = await get("/v1/models/claude-sonnet-5")
    assert.equal(response.status, 404)
    assert.equal(body.detail, claudeAt)
    const other = await get("/v1/models/gpt-4o", version)
    assert.equal(other.body.detail, gptAt)
    assert.equal(openai.seen.length + anthropic.seen.length, 0)
  })

  it("is refused for its missing price if no route serves it", async () => {
    const response = await gateway.post("/v1/chat/completions", { model: "gpt-unknown", messages })
    const { detail } = (await response.json()) as Body
    assert.equal(detail, "The model gpt-unknown is not offered here: it has no price")
  })
})

/** docs/reference/passthrough.md#what-is-relayed */
describe("what coding agents send", options, () => {
  const cache_control = { type: "ephemeral", ttl: "1h" }
  const thinking = { type: "thinking", thinking: "The file first.", signature: "EqQBCgIYAhIM" }
  const asked = {
    model: "claude-sonnet-5",
    max_tokens: 32_000,
    stream: true,
    thinking: { type: "enabled", budget_tokens: 31_999 },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    a_field_of_tomorrow: { deep: [1, 2.5, 12_345_678_901_234] },
    metadata: { user_id: '{"device_id":"d"}' },
    system: [{ type: "text", text: "You are an agent.", cache_control }],
    tools: [
      {
        name: "Read",
        description: "Reads a file",
        input_schema: { type: "object", properties: { file_path: { type: "string" } } },
        eager_input_streaming: true,
        cache_control
      }
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "Read it", cache_control }] },
      {
        role: "assistant",
        content: [
          thinking,
          { type: "redacted_thinking", data: "EmwKAhgB" },
          { type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "a" } }
        ]
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "one", cache_control }]
      }
    ]
  }
  const event = (value: { readonly type: string }) =>
    `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`
  const streamed = [
    event({
      type: "message_start",
      message: { id: "msg_1", model: "claude-sonnet-5", content: [], usage: anthropicUsage }
    } as { type: string }),
    ...[
      { index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
      { index: 1, content_block: { type: "a_block_of_tomorrow", value: [1] } }
    ].map((it) => event({ type: "content_block_start", ...it })),
    ...[
      { type: "thinking_delta", thinking: "The file." },
      { type: "signature_delta", signature: "EqQBCgIYAhIM" }
    ].map((delta) => event({ type: "content_block_delta", index: 0, delta } as { type: string })),
    event({ type: "an_event_of_tomorrow" }),
    event({ type: "message_delta", usage: { output_tokens: 9 } } as { type: string }),
    event({ type: "message_stop" })
  ].join("")

  it("passes unchanged: unknown fields, beta headers, cache control and thinking blocks", async () => {
    anthropic.script = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
      response.end(streamed)
    }
    const sent = {
      ...version,
      "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,of-tomorrow",
      "anthropic-dangerous-direct-browser-access": "true",
      "x-app": "cli",
      "x-claude-code-session-id": "5e0",
      "user-agent": "claude-cli/2.1.332 (external, cli)"
    }
    const body = JSON.stringify(asked, undefined, 1)
    const response = await gateway.post("/v1/messages?beta=true", body, sent)
    assert.equal(await response.text(), streamed)
    const seen = anthropic.seen.at(-1)!
    assert.equal(seen.url, "/v1/messages?beta=true")
    assert.equal(seen.body, body)
    assert.deepInclude(seen.headers, sent)
    assert.equal(seen.headers["x-api-key"], "sk-vendor-anthropic")
    await gateway.settled()
  })

  it("passes unchanged from Codex to OpenAI's responses", async () => {
    const body = JSON.stringify({
      model: "gpt-4o",
      instructions: "You are an agent.",
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
      tools: [{ type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark" } }],
      include: ["reasoning.encrypted_content"],
      store: false,
      prompt_cache_key: "thread",
      client_metadata: { of_tomorrow: "1" }
    })
    const sent = { originator: "codex_exec", session_id: "5e0", "x-codex-turn-metadata": "{}" }
    await gateway.post("/v1/responses", body, sent)
    const seen = openai.seen.at(-1)!
    assert.equal(seen.body, body)
    assert.deepInclude(seen.headers, sent)
    await gateway.settled()
  })
})
