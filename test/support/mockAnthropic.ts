import { events, json, mockVendor } from "./mockVendors.ts"
import type { Script } from "./mockVendors.ts"

export const anthropicUsage = {
  input_tokens: 600,
  cache_read_input_tokens: 400,
  cache_creation_input_tokens: 0,
  output_tokens: 500
}

const event = (type: string, value: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`

export const messageEvents = () => [
  event("message_start", {
    message: {
      id: "msg_mock",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...anthropicUsage, output_tokens: 1 }
    }
  }),
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  event("ping", {}),
  ...["Hel", "lo", " there"].map((text) =>
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text } })
  ),
  event("content_block_stop", { index: 0 }),
  event("message_delta", {
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 500 }
  }),
  event("message_stop", {})
]

/** The default responses of the mock. docs/reference/vendors.md#anthropic-messages */
export const anthropicScript: Script = (request, response) => {
  const body = JSON.parse(request.body)
  if (body.stream === true) return events(response, messageEvents())
  const tool = { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } }
  return json(response, 200, {
    id: "msg_mock",
    type: "message",
    role: "assistant",
    model: body.model,
    content: [body.tools === undefined ? { type: "text", text: "Hello there" } : tool],
    stop_reason: body.tools === undefined ? "end_turn" : "tool_use",
    stop_sequence: null,
    usage: anthropicUsage
  })
}

export const mockAnthropic = () => mockVendor(anthropicScript)
