import type { Recorded } from "../recordedVendors.ts"
import { argumentsFor, at, formed, listAt, words } from "./body.ts"

const event = (type: string, value: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`

const usage = {
  input_tokens: 20,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 10,
  service_tier: "standard"
}

const toolOf = (body: unknown) => {
  const last = listAt(body, "messages").at(-1)
  const isOver = listAt(last, "content").some((it) => at(it, "type") === "tool_result")
  return isOver ? undefined : at(listAt(body, "tools")[0], "name")
}

const piecesOf = (body: unknown): ReadonlyArray<string> =>
  at(body, "output_config", "format", "type") === "json_schema"
    ? [JSON.stringify(formed).slice(0, 9), JSON.stringify(formed).slice(9)]
    : words

const messages = (body: unknown): Recorded => {
  const name = toolOf(body)
  const input = argumentsFor(listAt(body, "tools")[0])
  const block =
    name === undefined
      ? { type: "text", text: piecesOf(body).join("") }
      : { type: "tool_use", id: "toolu_rec1", name, input }
  const whole = {
    id: "msg_rec1",
    type: "message",
    role: "assistant",
    model: at(body, "model"),
    content: [block],
    stop_reason: name === undefined ? "end_turn" : "tool_use",
    stop_sequence: null,
    container: null,
    usage
  }
  if (at(body, "stream") !== true) return { json: whole }
  const start = name === undefined ? { type: "text", text: "" } : { ...block, input: {} }
  const deltas =
    name === undefined
      ? piecesOf(body).map((text) => ({ type: "text_delta", text }))
      : ["", JSON.stringify(input)].map((partial_json) => ({
          type: "input_json_delta",
          partial_json
        }))
  const begun = { ...whole, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } }
  return {
    events: [
      event("message_start", { message: begun }),
      event("content_block_start", { index: 0, content_block: start }),
      event("ping", {}),
      ...deltas.map((delta) => event("content_block_delta", { index: 0, delta })),
      event("content_block_stop", { index: 0 }),
      event("message_delta", {
        delta: { stop_reason: whole.stop_reason, stop_sequence: null, container: null },
        usage
      }),
      event("message_stop", {})
    ]
  }
}

export const record = (path: string, body: unknown): Recorded => {
  switch (path) {
    case "/v1/messages":
      return messages(body)
    case "/v1/messages/count_tokens":
      return { json: { input_tokens: 20 } }
    default:
      return undefined
  }
}
