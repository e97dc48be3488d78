import type { CallContent, Settings } from "../../src/client/schema.ts"

/** What the first call of the pictures sent and received. */
export const settings: Settings = { keep_calls: true }

const request = {
  model: "gpt-5-mini",
  messages: [
    { role: "system", content: "Answer in one sentence." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is on this picture?" },
        { type: "image_url", image_url: { url: "[image/png, 48210 bytes]" } }
      ]
    }
  ],
  max_completion_tokens: 200
}

const response = {
  id: "chatcmpl-1",
  object: "chat.completion",
  model: "gpt-5-mini",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "A lighthouse at dawn, with its light still on." },
      finish_reason: "stop"
    }
  ],
  usage: { prompt_tokens: 812, completion_tokens: 12, total_tokens: 824 }
}

const sideOf = (value: unknown, bytes: number) => ({
  content_type: "application/json",
  text: JSON.stringify(value),
  truncated: false,
  bytes
})

export const contentOf = (callId: string): CallContent => ({
  call_id: callId,
  path: "/v1/chat/completions",
  request: sideOf(request, 64_512),
  response: sideOf(response, 402)
})
