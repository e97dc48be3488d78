import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import type { TokenModel } from "../../../src/catalog/OpenRoutes.ts"
import { makeUpstreamCatalog, withBuiltIn } from "../../../src/catalog/UpstreamCatalog.ts"
import { make } from "../../../src/domain/Credits.ts"
import { jsonDepthMax } from "../../../src/domain/json/JsonLimits.ts"
import { planCall } from "../../../src/passthrough/CallPlan.ts"
import { cpuMillis } from "../../support/cpuTime.ts"

const price = {
  per: "million_tokens",
  input: make(1_000_000n),
  output: make(1_000_000n)
} as const

const model = (vendor: string, reasoning?: bigint): TokenModel => ({
  vendor,
  model: "m",
  price: {
    ...price,
    ...(reasoning === undefined ? {} : { reasoning: make(reasoning) })
  },
  outputTokensMax: 1000,
  inputTokensMax: 100_000
})

/** Both prices are one micro-credit per token, so the hold equals the number of tokens. */
const catalog = makeUpstreamCatalog(
  withBuiltIn({
    tokenModels: [model("openai"), model("anthropic"), model("google")]
  })
)

const routes = {
  chat: ["openai", "/v1/chat/completions"],
  responses: ["openai", "/v1/responses"],
  messages: ["anthropic", "/v1/messages"],
  gemini: ["google", "/v1beta/models/m:generateContent"]
} as const

const planOf = (
  to: keyof typeof routes,
  body: Readonly<Record<string, unknown>>,
  prices = catalog
) => {
  const match = prices.match(routes[to][0], "POST", routes[to][1])
  assert(match._tag === "Open")
  const text = JSON.stringify({ model: "m", ...body })
  const plan = planCall(prices, match.route, match.model, new TextEncoder().encode(text), 0)
  return { text, plan }
}

/** The tokens held for the input and for the output. */
const heldOf = (to: keyof typeof routes, body: Readonly<Record<string, unknown>>) => {
  const { plan, text } = planOf(to, body)
  const { hold } = Result.getOrThrow(plan)
  return { tokens: Number(hold), body: text.length, output: Number(hold) - text.length }
}

describe("the hold of a call is the most that it can cost", () => {
  it("the largest of the limits in a body counts, whichever the upstream uses", () => {
    const body = { max_tokens: 900, max_output_tokens: 1, max_completion_tokens: 2 }
    assert.strictEqual(heldOf("chat", body).output, 900)
    assert.strictEqual(heldOf("messages", { max_tokens: 30 }).output, 30)
    assert.strictEqual(heldOf("responses", { max_output_tokens: 5000 }).output, 1000)
  })

  it("counts tools in the input and in namespaces, as Codex sends them", () => {
    const bodyWith = (...tools: ReadonlyArray<object>) => ({
      input: [
        { type: "message", role: "user", content: "Hi" },
        {
          type: "additional_tools",
          role: "developer",
          tools: [{ type: "namespace", name: "functions", tools }]
        }
      ],
      max_output_tokens: 10
    })
    const own = { type: "custom", name: "exec" }
    assert.strictEqual(heldOf("responses", bodyWith(own)).output, 10)
    const { plan } = planOf("responses", bodyWith(own, { type: "web_search" }))
    assert.deepStrictEqual(
      Result.isFailure(plan) && plan.failure.errors?.map(({ pointer }) => pointer),
      ["#/input/1/tools/0/tools/1"]
    )
    // A server's results are input of any length
    const server = heldOf("responses", bodyWith({ type: "mcp", server_label: "x" }))
    assert.strictEqual(server.tokens, 100_010)
  })

  it("Gemini's candidates count in both of its spellings", () => {
    const camel = { generationConfig: { maxOutputTokens: 10, candidateCount: 8 } }
    assert.strictEqual(heldOf("gemini", camel).output, 80)
    const snake = { generation_config: { max_output_tokens: 10, candidate_count: 8 } }
    assert.strictEqual(heldOf("gemini", snake).output, 80)
    for (const name of ["generationConfig", "generation_config"]) {
      const limits = { maxOutputTokens: 1, max_output_tokens: 10 }
      const both = { [name]: { ...limits, candidateCount: 1, candidate_count: 8 } }
      assert.strictEqual(heldOf("gemini", both).output, 80, name)
    }
  })

  it("reasoning that costs more than output is included in the hold", () => {
    const { plan, text } = planOf(
      "chat",
      { max_tokens: 10 },
      makeUpstreamCatalog(withBuiltIn({ tokenModels: [model("openai", 3_000_000n)] }))
    )
    assert.strictEqual(Number(Result.getOrThrow(plan).hold), text.length + 30)
  })

  it("a file whose length is not in the body is held as the most that the model reads", () => {
    const url = "https://example.com/long.pdf"
    const files = [
      ["responses", { input: [{ content: [{ type: "input_file", file_url: url }] }] }],
      ["chat", { messages: [{ content: [{ type: "file", file: { file_data: "JVBERi0=" } }] }] }],
      ["chat", { messages: [{ content: [{ type: "video_url", video_url: { url } }] }] }],
      ["chat", { messages: [{ content: [{ type: "audio_url", audio_url: { url } }] }] }],
      ["chat", { messages: [{ content: [{ type: "file_url", file_url: { url } }] }] }],
      ["chat", { messages: [{ content: [{ type: "document_url", document_url: url }] }] }],
      ["chat", { messages: [{ content: [{ type: "input_audio", input_audio: url }] }] }],
      [
        "messages",
        { messages: [{ content: [{ type: "document", source: { type: "url", url } }] }] }
      ],
      ["gemini", { contents: [{ parts: [{ fileData: { fileUri: url } }] }] }],
      ["gemini", { contents: [{ parts: [{ file_data: { file_uri: url } }] }] }]
    ] as const
    for (const [to, body] of files) {
      assert.strictEqual(heldOf(to, body).tokens, 100_000 + 1000, JSON.stringify(body))
    }
    // Text about files is text
    const words = { messages: [{ content: '"file_url": "x", "type":"document"' }] }
    const held = heldOf("chat", words)
    assert.strictEqual(held.output, 1000)
  })

  it("a context that the vendor may compact is held twice", () => {
    const edits = { context_management: { edits: [{ type: "compact_20260112" }] } }
    const { plan, text } = planOf("messages", { max_tokens: 30, stream: true, ...edits })
    const { hold, metered, slices } = Result.getOrThrow(plan)
    assert.strictEqual(Number(hold), 2 * (text.length + 30))
    assert.isUndefined(slices)
    assert.isTrue(metered._tag === "Tokens" && metered.mayReason)
    const clears = { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } }
    assert.strictEqual(heldOf("messages", { max_tokens: 30, ...clears }).output, 30)
  })

  it("tools that the vendor runs are held as the most that the model reads", () => {
    for (const [to, body] of [
      ["responses", { tools: [{ type: "function" }, { type: "mcp", server_url: "https://x" }] }],
      ["messages", { tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] }],
      ["messages", { tools: [{ type: "mcp_toolset", mcp_server_name: "x" }] }],
      ["messages", { mcp_servers: [{ type: "url", url: "https://x", name: "x" }] }],
      ["gemini", { tools: [{ urlContext: {} }] }],
      ["gemini", { tools: { urlContext: {} } }],
      ["gemini", { tools: [{ function_declarations: [] }, { code_execution: {} }] }]
    ] as const) {
      assert.strictEqual(heldOf(to, body).tokens, 100_000 + 1000, JSON.stringify(body))
    }
    for (const [to, tool] of [
      ["responses", { type: "function", name: "mcp" }],
      ["messages", { name: "url_context", input_schema: {} }],
      ["gemini", { functionDeclarations: [{ name: "code_execution" }] }]
    ] as const) {
      assert.strictEqual(heldOf(to, { tools: [tool] }).output, 1000, JSON.stringify(tool))
    }
  })

  it("a body that is nested too deeply is refused", () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)
    const match = catalog.match("openai", "POST", "/v1/chat/completions")
    assert(match._tag === "Open")
    const plan = (depth: number, more = "") => {
      const text = `{"model":"m","max_tokens":5,${more}"x":"\\u0041","messages":${nested(depth)}}`
      return planCall(catalog, match.route, match.model, new TextEncoder().encode(text), 0)
    }
    const deepest = jsonDepthMax - 1
    assert.isTrue(Result.isSuccess(plan(deepest)))
    assert.isTrue(Result.isSuccess(plan(deepest, '"stream":true,"stream_options":{},')))
    const deeper = plan(deepest + 1)
    assert.strictEqual(Result.isFailure(deeper) && deeper.failure.code, 2002)
  })

  it("every model of Anthropic's fallbacks may respond, so the hold covers the most expensive", () => {
    const expensive = {
      ...model("anthropic"),
      model: "dear",
      price: { ...price, output: make(9_000_000n) }
    }
    const prices = makeUpstreamCatalog(
      withBuiltIn({ tokenModels: [model("anthropic"), expensive] })
    )
    const held = (body: Readonly<Record<string, unknown>>) => {
      const { plan, text } = planOf("messages", body, prices)
      return Number(Result.getOrThrow(plan).hold) - text.length
    }
    assert.strictEqual(held({ max_tokens: 10 }), 10)
    assert.strictEqual(held({ max_tokens: 10, fallbacks: null }), 10)
    assert.strictEqual(held({ max_tokens: 10, fallbacks: [{ model: "m" }] }), 10)
    assert.strictEqual(held({ max_tokens: 10, fallbacks: [{ model: "dear" }] }), 90)
    assert.strictEqual(held({ max_tokens: 10, fallbacks: [{ model: "m", max_tokens: 20 }] }), 20)
    const both = [{ model: "m" }, { model: "dear", max_tokens: 20 }]
    assert.strictEqual(held({ max_tokens: 10, fallbacks: both }), 180)
  })

  it("fallbacks without a name or a price, or that may cost more than their price, are refused", () => {
    for (const [fallbacks, pointers] of [
      ["default", ["#/fallbacks"]],
      [[{ model: "unheard-of" }], ["#/fallbacks/0/model"]],
      [
        [{ model: "m" }, {}, "m"],
        ["#/fallbacks/1/model", "#/fallbacks/2/model"]
      ],
      [[{ model: "m", speed: "fast" }], ["#/fallbacks/0/speed"]],
      [[{ model: "m", max_tokens: -1e9 }], ["#/fallbacks/0/max_tokens"]]
    ] as const) {
      const { plan } = planOf("messages", { fallbacks })
      assert(Result.isFailure(plan))
      assert.strictEqual(plan.failure.code, 2001)
      const found = plan.failure.errors?.map(({ pointer }) => pointer)
      assert.deepStrictEqual(found, [...pointers])
    }
  })

  it("a long list of fallbacks does not read the body once for each", () => {
    const body = {
      max_tokens: 10,
      messages: [{ role: "user", content: "x".repeat(500_000) }],
      fallbacks: Array.from({ length: 5000 }, () => ({ model: "m" }))
    }
    const from = cpuMillis()
    assert.isTrue(Result.isSuccess(planOf("messages", body).plan))
    assert.isBelow(cpuMillis() - from, 1000)
  })

  it("only the first of many faults are listed", () => {
    const many = (entry: object) => Array.from({ length: 5000 }, () => entry)
    for (const body of [{ fallbacks: many({}) }, { tools: many({ type: "web_search" }) }]) {
      const { plan } = planOf("messages", body)
      assert.lengthOf((Result.isFailure(plan) && plan.failure.errors) || [], 100)
    }
  })

  it("a member in JSON escapes is held like the same member without them", () => {
    const expensive = {
      ...model("anthropic"),
      price: { ...price, cacheWriteLong: make(9_000_000n) }
    }
    const prices = makeUpstreamCatalog(withBuiltIn({ tokenModels: [expensive] }))
    const match = prices.match("anthropic", "POST", "/v1/messages")
    assert(match._tag === "Open")
    const held = (text: string) => {
      const plan = planCall(prices, match.route, match.model, new TextEncoder().encode(text), 0)
      return Number(Result.getOrThrow(plan).hold)
    }
    const body = (...words: ReadonlyArray<string>) =>
      `{"model":"m","max_tokens":1,"messages":[${words.join(",")}]}`
    assert.strictEqual(held(body('"\\u00e9"')), body('"\\u00e9"').length + 1)
    for (const [plain, escaped] of [
      ['{"file_id":"x"}', '{"\\u0066ile_id":"x"}'],
      ['{"type":"document"}', '{"type":"docu\\u006Dent"}'],
      ['{"type":"item_reference","id":"x"}', '{"type":"item\\u005freference","id":"x"}'],
      ['{"cachedContent":"x"}', '{"cached\\u0043ontent":"x"}'],
      ['{"image_url":"x"}', '{"image\\u005furl":"x"}'],
      ['{"ttl":"1h"}', '{"ttl":"\\u0031h"}']
    ] as const) {
      assert.deepEqual(JSON.parse(plain), JSON.parse(escaped))
      assert.isAtLeast(held(body(escaped)), held(body(plain)), escaped)
      assert.isAbove(held(body(plain)), body(plain).length + 1, plain)
    }
  })

  it("a prompt of the dashboard is held as the most that the model reads", () => {
    for (const prompt of [{ id: "pmpt_1" }, { id: "pmpt_1", variables: {} }]) {
      assert.strictEqual(heldOf("responses", { prompt }).tokens, 100_000 + 1000)
    }
    assert.strictEqual(heldOf("responses", { prompt: null }).output, 1000)
  })

  /** Names with a meaning in requests, used as properties of a tool, in its examples and in its calls. */
  const named = {
    prompt: { type: "string" },
    image: { type: "string", enum: ["1h", "24h"] },
    image_url: { type: "string" },
    file_id: { type: "string", default: "x" },
    container: { type: "string" },
    conversation: { type: "string" },
    previous_response_id: { type: "string" },
    cachedContent: { type: "object", properties: { file_id: { const: "x" } } },
    type: { const: "document" }
  }
  const input = {
    type: "document",
    prompt: { id: "x" },
    file_id: "x",
    file_url: "x",
    image: "x",
    cachedContent: "x",
    previous_response_id: "x",
    ttl: "1h"
  }
  const schema = {
    type: "object",
    properties: named,
    examples: [input],
    required: Object.keys(named)
  }

  it.each([
    [
      "Claude Code's tools and what it has called",
      "messages",
      {
        tools: [
          { name: "Task", description: "Launch an agent", input_schema: schema },
          { name: "Read", input_schema: schema, input_examples: [input] }
        ],
        output_config: { format: { type: "json_schema", schema } },
        metadata: { user_id: "u", file_id: "x" },
        messages: [
          { role: "user", content: "Say hello" },
          { role: "assistant", content: [{ type: "tool_use", id: "t", name: "Task", input }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "done" }] }
        ]
      }
    ],
    [
      "a chat",
      "chat",
      {
        tools: [{ type: "function", function: { name: "f", parameters: schema } }],
        response_format: { type: "json_schema", json_schema: { name: "f", schema } },
        metadata: { file_id: "x" },
        modalities: ["text", "image"],
        messages: [{ role: "user", content: "Say hello" }]
      }
    ],
    [
      "a response",
      "responses",
      {
        tools: [{ type: "function", name: "f", parameters: schema }],
        text: { format: { type: "json_schema", name: "f", schema } },
        input: [{ role: "user", content: "Say hello" }]
      }
    ],
    [
      "Gemini's contents",
      "gemini",
      {
        tools: [
          { functionDeclarations: [{ name: "f", parameters: schema, response: schema }] },
          { functionDeclarations: [{ name: "g", parametersJsonSchema: schema }] }
        ],
        generationConfig: { responseJsonSchema: schema, responseSchema: schema },
        contents: [
          { role: "model", parts: [{ functionCall: { name: "f", args: input } }] },
          { role: "user", parts: [{ functionResponse: { name: "f", response: input } }] }
        ]
      }
    ]
  ] as const)("names of the client's own schemas and arguments hide nothing: %s", (_, to, body) => {
    assert.strictEqual(heldOf(to, body).output, 1000)
  })

  it("a picture and a file in the result of a tool count", () => {
    const result = (block: object) => ({
      messages: [{ role: "user", content: [{ type: "tool_result", content: [block] }] }]
    })
    const picture = result({ type: "image", source: { type: "url", url: "https://x" } })
    assert.strictEqual(heldOf("messages", picture).output, 6000 + 1000)
    const file = result({ type: "document", source: { type: "file", file_id: "x" } })
    assert.strictEqual(heldOf("messages", file).tokens, 100_000 + 1000)
    const parts = [{ functionResponse: { response: {}, parts: [{ inlineData: { data: "" } }] } }]
    assert.strictEqual(heldOf("gemini", { contents: [{ parts }] }).output, 6000 + 1000)
  })

  it("a picture is held as the most tokens that it can be for its model and detail", () => {
    const picture = (detail?: string) => ({
      messages: [{ content: [{ type: "image_url", image_url: { url: "https://x", detail } }] }]
    })
    assert.strictEqual(heldOf("chat", picture()).output, 6000 + 1000)
    assert.strictEqual(heldOf("chat", picture("original")).output, 12_000 + 1000)
    const mini = { ...model("openai"), model: "gpt-4o-mini" }
    const prices = makeUpstreamCatalog(withBuiltIn({ tokenModels: [mini] }))
    for (const name of ["gpt-4o-mini", "gpt-4o-mini-2024-07-18"]) {
      const { plan, text } = planOf("chat", { ...picture(), model: name }, prices)
      // Eight tiles of 5,667 tokens, and 2,833
      assert.strictEqual(Number(Result.getOrThrow(plan).hold), text.length + 48_169 + 1000)
    }
  })

  it("a long-lived cache of a tool's definition counts", () => {
    const expensive = {
      ...model("anthropic"),
      price: { ...price, cacheWriteLong: make(9_000_000n) }
    }
    const prices = makeUpstreamCatalog(withBuiltIn({ tokenModels: [expensive] }))
    const cache_control = { type: "ephemeral", ttl: "1h" }
    const { plan, text } = planOf(
      "messages",
      { tools: [{ name: "f", input_schema: {}, cache_control }] },
      prices
    )
    assert.strictEqual(Number(Result.getOrThrow(plan).hold), 9 * text.length + 1000)
  })

  it("an input that refers to a stored item is held as the most that the model reads", () => {
    const prices = makeUpstreamCatalog(withBuiltIn({ tokenModels: [model("openai")] }))
    const match = prices.match("openai", "POST", "/v1/responses")
    assert(match._tag === "Open")
    const held = (item: object) => {
      const text = JSON.stringify({ model: "m", max_output_tokens: 1, input: [item] })
      const plan = planCall(prices, match.route, match.model, new TextEncoder().encode(text), 0)
      return { hold: Number(Result.getOrThrow(plan).hold), bytes: text.length }
    }
    const whole = held({ type: "message", id: "msg_1", role: "user", content: "Hi" })
    assert.strictEqual(whole.hold, whole.bytes + 1)
    for (const item of [
      { id: "msg_1" },
      { type: null, id: "x" },
      { type: "item_reference", id: "x" }
    ]) {
      const { bytes, hold } = held(item)
      assert.isAbove(hold, bytes + 1, JSON.stringify(item))
    }
  })

  it("references to responses stored in the shared upstream account are refused", () => {
    for (const name of ["previous_response_id", "conversation"]) {
      const fault = Result.getFailure(
        planOf("responses", { input: "go on", [name]: "resp_1" }).plan
      )
      assert(fault._tag === "Some")
      assert.strictEqual(fault.value.code, 2001)
      assert.strictEqual(fault.value.errors?.[0]?.pointer, `#/${name}`)
      assert.isTrue(Result.isSuccess(planOf("responses", { input: "go on", [name]: null }).plan))
    }
  })
})

describe("a body that the vendor and the gateway could read differently is refused", () => {
  const fault = (to: keyof typeof routes, body: Readonly<Record<string, unknown>>) => {
    const { plan } = planOf(to, body)
    return Result.isFailure(plan)
      ? [plan.failure.code, plan.failure.errors?.map(({ pointer }) => pointer)]
      : undefined
  }

  it("for a limit that is not a positive whole number", () => {
    for (const bad of [0, -1, 0.5, -1e9, 1.5, 1e21]) {
      for (const name of ["max_tokens", "max_completion_tokens", "max_output_tokens", "n"]) {
        assert.deepStrictEqual(fault("chat", { [name]: bad }), [2001, [`#/${name}`]])
        assert.deepStrictEqual(fault("chat", { [name]: bad, stream_options: {} }), [
          2001,
          [`#/${name}`]
        ])
      }
      for (const name of ["maxOutputTokens", "candidateCount"]) {
        const pointer = `#/generationConfig/${name}`
        assert.deepStrictEqual(fault("gemini", { generationConfig: { [name]: bad } }), [
          2001,
          [pointer]
        ])
      }
      for (const name of ["max_output_tokens", "candidate_count"]) {
        const pointer = `#/generation_config/${name}`
        assert.deepStrictEqual(fault("gemini", { generation_config: { [name]: bad } }), [
          2001,
          [pointer]
        ])
      }
    }
    assert.isUndefined(fault("chat", { max_tokens: 1, n: null }))
  })

  const planText = (text: string) => {
    const match = catalog.match("openai", "POST", "/v1/chat/completions")
    assert(match._tag === "Open")
    return planCall(catalog, match.route, match.model, new TextEncoder().encode(text), 0)
  }

  it("for a repeated key at any depth", () => {
    for (const text of [
      '{"model":"m","max_tokens":9,"max_tokens":1}',
      '{"model":"m","max_tokens":9,"max_\\u0074okens":1}',
      '{"model":"dear","messages":[],"model":"m"}',
      '{"model":"m","stream_options":{"include_usage":true,"include_usage":false}}',
      '{"model":"m","generationConfig":{"a":{"b":1},"a":2}}',
      '{"model":"m","tools":[{"type":"function","type" : "web_search"}]}',
      '{"model":"m","messages":[[[{"a":[],"a"\n:{}}]]]}',
      '{"model":"m","__proto__":1,"__proto__":2}',
      '{"model":"m","a\\"":1,"a\\"":2}',
      '{"model":"m","":1,"":2}',
      '{"model":"m","a":{"x":1},"a":{}}'
    ]) {
      JSON.parse(text)
      const plan = planText(text)
      assert.strictEqual(Result.isFailure(plan) && plan.failure.code, 2002, text)
    }
  })

  it("but not for texts that look like keys", () => {
    for (const text of [
      '{"model":"m","x":"\\"a\\":1,\\"a\\":2","y":["a","a",":"]}',
      '{"model":"m","x":"\\\\","y":"\\\\\\"","a" : "a","b":"a"}',
      '{"model":"m","1":0,"01":0,"__proto__":{"1":0},"constructor":{}}'
    ]) {
      JSON.parse(text)
      assert.isTrue(Result.isSuccess(planText(text)), text)
    }
  })

  it("for a repeated key in any JSON, and for nothing else", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.nat(3), (value, indent) => {
        const text = JSON.stringify({ model: "m", x: value }, null, indent)
        assert.isTrue(Result.isSuccess(planText(text)), text)
        const twice = text.replace("{", '{"\\u006d\\u006fdel":"m",')
        const plan = planText(twice)
        assert.strictEqual(Result.isFailure(plan) && plan.failure.code, 2002, twice)
      }),
      { numRuns: 500 }
    )
  })
})

describe("a plain body needs no decoder", () => {
  const value = fc.oneof(
    fc.constantFrom<unknown>(null, true, false, "", "m", "nobody", 0, 1, -1, 1.5, 1e9, [], {}),
    fc.constantFrom<unknown>({ include_usage: true }, { include_usage: 1 }, [null], "1")
  )
  const names = [
    "model",
    "stream",
    "background",
    "n",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "stream_options",
    "generationConfig",
    "conversation",
    "toString",
    "__proto__"
  ] as const
  const body = fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 4 })

  it("the hold and every fault equal those of the decoder", () => {
    const kinds = new Set<string>()
    fc.assert(
      fc.property(body, (members) => {
        const planned = (more: string) => {
          const { plan } = planOf("chat", { ...members, [more]: null })
          kinds.add(plan._tag)
          return Result.match(plan, {
            onFailure: ({ code, errors }) => ({ code, errors }),
            onSuccess: ({ hidesUsage, hold, model }) => ({ hidesUsage, hold, model })
          })
        }
        // A member that only the decoder knows is left to it, even if it is empty
        assert.deepStrictEqual(planned("generation_konfig"), planned("generation_config"))
      }),
      { numRuns: 2000 }
    )
    assert.strictEqual(kinds.size, 2)
  })
})

describe("a byte order mark before a body", () => {
  const mark = [0xef, 0xbb, 0xbf]
  const planMarked = (to: keyof typeof routes, text: string) => {
    const match = catalog.match(routes[to][0], "POST", routes[to][1])
    assert(match._tag === "Open")
    const bytes = Uint8Array.from([...mark, ...new TextEncoder().encode(text)])
    return Result.getOrThrow(planCall(catalog, match.route, match.model, bytes, 0))
  }

  it("is skipped, and does not reach the upstream", () => {
    for (const to of ["chat", "responses", "messages", "gemini"] as const) {
      const text = JSON.stringify({ model: "m", max_tokens: 5 })
      const plan = planMarked(to, text)
      assert.strictEqual(new TextDecoder("utf-8", { ignoreBOM: true }).decode(plan.body), text)
      assert.strictEqual(plan.hold, Result.getOrThrow(planOf(to, { max_tokens: 5 }).plan).hold)
    }
  })

  it("is skipped in a stream to which the request for usage is added", () => {
    const { body } = planMarked("chat", '{"model":"m","stream":true}')
    assert.strictEqual(
      new TextDecoder("utf-8", { ignoreBOM: true }).decode(body),
      '{"stream_options":{"include_usage":true},"model":"m","stream":true}'
    )
  })

  it("is skipped once", () => {
    assert.throws(() => planMarked("chat", `\ufeff${JSON.stringify({ model: "m" })}`))
  })
})
