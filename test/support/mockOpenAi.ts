import { events, json, mockVendor } from "./mockVendors.ts"
import type { Script } from "./mockVendors.ts"

export const openAiUsage = {
  prompt_tokens: 1000,
  completion_tokens: 500,
  total_tokens: 1500,
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 100 }
}

export const chatCompletion = (model: string, message: object = {}) => ({
  id: "chatcmpl-mock",
  object: "chat.completion",
  created: 1,
  model,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello there", ...message },
      finish_reason: "tool_calls" in message ? "tool_calls" : "stop"
    }
  ],
  usage: openAiUsage
})

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

export const chatEvents = (words: ReadonlyArray<string>, withUsage: boolean) => {
  const head = { id: "chatcmpl-mock", object: "chat.completion.chunk", created: 1, model: "gpt-4o" }
  const usage = withUsage ? { usage: null } : {}
  return [
    ...words.map((content) =>
      data({ ...head, choices: [{ index: 0, delta: { content }, finish_reason: null }], ...usage })
    ),
    data({ ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop" }], ...usage }),
    ...(withUsage ? [data({ ...head, choices: [], usage: openAiUsage })] : []),
    "data: [DONE]\n\n"
  ]
}

/** The default responses of the mock. docs/reference/vendors.md#openai-calls */
export const openAiScript: Script = (request, response) => {
  const body = request.body === "" ? {} : JSON.parse(request.body)
  if (request.url.startsWith("/v1/models")) {
    const gpt = { id: "gpt-4o", object: "model", created: 1, owned_by: "mock" }
    return json(response, 200, { object: "list", data: [gpt] })
  }
  if (body.stream === true) {
    const withUsage = body.stream_options?.include_usage === true
    return events(response, chatEvents(["Hel", "lo", " there"], withUsage))
  }
  if (body.tools !== undefined) {
    const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } }
    return json(response, 200, chatCompletion(body.model, { content: null, tool_calls: [call] }))
  }
  return json(response, 200, chatCompletion(body.model), {
    "x-ratelimit-remaining-requests": "99",
    "x-request-id": "req_mock",
    "set-cookie": "__cf_bm=upstream",
    "openai-organization": "org-secret",
    connection: "keep-alive, x-hop",
    "x-hop": "1"
  })
}

export const mockOpenAi = () => mockVendor(openAiScript)
