/** Streams of reasoning models, whose 20,000 tokens only appear in the usage figures. */
export interface ReasoningStream {
  readonly path: string
  readonly body: object
  readonly events: ReadonlyArray<string>
  /** The text that the client has read before it disconnects, by moment. */
  readonly moments: Readonly<Record<string, string>>
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, value: object) => `event: ${type}\n${data({ type, ...value })}`

const prompt = [{ role: "user", content: "Think" }]
const reasoned = { reasoning_tokens: 20_000 }

const chunk = (delta: object, finish: string | null = null) =>
  data({
    id: "chatcmpl-mock",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish }],
    usage: null
  })

export const chat = (model = "gpt-5.1", outputTokens = 20_010): ReasoningStream => ({
  path: "/v1/chat/completions",
  body: { model, stream: true, max_completion_tokens: 30_000, messages: prompt },
  events: [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hello" }),
    chunk({ content: " there" }),
    chunk({}, "stop"),
    data({
      choices: [],
      usage: {
        prompt_tokens: 100,
        completion_tokens: outputTokens,
        completion_tokens_details: outputTokens > 20_000 ? reasoned : {}
      }
    }),
    "data: [DONE]\n\n"
  ],
  moments: {
    "in the middle of reasoning": '"assistant"',
    "in the middle of the text": "Hello",
    "after finish_reason": '"stop"'
  }
})

const responseUsage = {
  input_tokens: 100,
  output_tokens: 20_010,
  output_tokens_details: reasoned
}

export const responses: ReasoningStream = {
  path: "/v1/responses",
  body: { model: "gpt-5.1", stream: true, max_output_tokens: 30_000, input: "Think" },
  events: [
    event("response.created", { response: { id: "resp_1", usage: null } }),
    event("response.in_progress", { response: { id: "resp_1", usage: null } }),
    event("response.output_item.added", { item: { type: "reasoning" } }),
    event("response.output_item.done", { item: { type: "reasoning" } }),
    event("response.output_text.delta", { delta: "Hello" }),
    event("response.output_text.done", { text: "Hello" }),
    event("response.completed", { response: { id: "resp_1", usage: responseUsage } })
  ],
  moments: {
    "in the middle of reasoning": "output_item.added",
    "in the middle of the text": "output_text.delta",
    "after output_text.done": "output_text.done"
  }
}

export const messages: ReasoningStream = {
  path: "/v1/messages",
  body: {
    model: "claude-sonnet-4-5",
    stream: true,
    max_tokens: 30_000,
    thinking: { type: "enabled", budget_tokens: 20_000 },
    messages: prompt
  },
  events: [
    event("message_start", { message: { usage: { input_tokens: 100, output_tokens: 1 } } }),
    event("content_block_start", { index: 0, content_block: { type: "thinking" } }),
    event("content_block_delta", { index: 0, delta: { type: "thinking_delta", thinking: "Hm" } }),
    event("content_block_stop", { index: 0 }),
    event("content_block_delta", { index: 1, delta: { type: "text_delta", text: "Hello" } }),
    event("content_block_stop", { index: 1 }),
    event("message_delta", {
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: 20_010 }
    }),
    event("message_stop", {})
  ],
  moments: {
    "in the middle of reasoning": "thinking_delta",
    "in the middle of the text": "text_delta",
    "after the last content_block_stop": '"content_block_stop","index":1'
  }
}

const geminiChunk = (text: string, usage: object, finish?: string) =>
  data({
    candidates: [
      {
        content: { parts: [{ text }] },
        ...(finish === undefined ? {} : { finishReason: finish })
      }
    ],
    usageMetadata: { promptTokenCount: 100, ...usage }
  })

export const gemini: ReasoningStream = {
  path: "/vendors/google/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
  body: { contents: [{ parts: [{ text: "Think" }] }] },
  events: [
    geminiChunk("Hello", { candidatesTokenCount: 1 }),
    geminiChunk(" there", { candidatesTokenCount: 2 }, "STOP").replace(
      /,"usageMetadata".*\}/u,
      "}"
    ),
    geminiChunk("", { candidatesTokenCount: 10, thoughtsTokenCount: 20_000 }, "STOP")
  ],
  moments: { "in the middle of the text": "Hello", "after finishReason": "STOP" }
}
