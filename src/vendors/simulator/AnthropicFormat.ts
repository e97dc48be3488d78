import type { Said } from "./UpstreamSimulator.ts"

const message = (said: Said) => ({
  id: `msg_${said.seed.slice(0, 24)}`,
  type: "message",
  role: "assistant",
  model: said.model
})

/** vendors.md A4. */
export const anthropicAnswer = (said: Said) => ({
  ...message(said),
  content: [{ type: "text", text: said.words.join(" ") }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: said.inputTokens, output_tokens: said.words.length }
})

/** The same answer as server-sent events, a word each; the usage at the end is cumulative. */
export const anthropicEvents = (said: Said): ReadonlyArray<string> => [
  event("message_start", {
    message: {
      ...message(said),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: said.inputTokens, output_tokens: 1 }
    }
  }),
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  ...said.words.map((word, index) =>
    event("content_block_delta", {
      index: 0,
      delta: { type: "text_delta", text: index === 0 ? word : ` ${word}` }
    })
  ),
  event("content_block_stop", { index: 0 }),
  event("message_delta", {
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { input_tokens: said.inputTokens, output_tokens: said.words.length }
  }),
  event("message_stop", {})
]

const event = (type: string, data: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
