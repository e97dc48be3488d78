import type { Recorded } from "../recordedVendors.ts"
import { argumentsFor, at, formed, listAt, words } from "./body.ts"

const sse = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

const usage = {
  prompt_tokens: 20,
  completion_tokens: 10,
  total_tokens: 30,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 }
}

const argumentsOf = (body: unknown) => JSON.stringify(argumentsFor(listAt(body, "tools")[0]))

/** A tool is called once, and its result is answered with text. */
const toolOf = (body: unknown): unknown => {
  const last = listAt(body, "messages").at(-1) ?? listAt(body, "input").at(-1)
  const isOver = at(last, "role") === "tool" || at(last, "type") === "function_call_output"
  const [tool] = listAt(body, "tools")
  return isOver ? undefined : (at(tool, "function", "name") ?? at(tool, "name"))
}

const halvesOf = (text: string) => [text.slice(0, 9), text.slice(9)]

const wantsJson = (body: unknown) =>
  String(at(body, "response_format", "type") ?? at(body, "text", "format", "type")).startsWith(
    "json"
  )

const piecesOf = (body: unknown): ReadonlyArray<string> =>
  wantsJson(body) ? halvesOf(JSON.stringify(formed)) : words

const chatHead = (body: unknown) => ({
  id: "chatcmpl-rec1",
  created: 1_763_800_000,
  model: `${at(body, "model")}-2024-08-06`,
  service_tier: "default",
  system_fingerprint: "fp_rec"
})

const chat = (body: unknown): Recorded => {
  const name = toolOf(body)
  const call = {
    id: "call_rec1",
    type: "function",
    function: { name, arguments: argumentsOf(body) }
  }
  if (at(body, "stream") === true)
    return { events: chatEvents(body, name === undefined ? undefined : call) }
  const content = piecesOf(body).join("")
  const message = { role: "assistant", content, refusal: null, annotations: [] }
  return {
    json: {
      ...chatHead(body),
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: name === undefined ? message : { ...message, content: null, tool_calls: [call] },
          logprobs: null,
          finish_reason: name === undefined ? "stop" : "tool_calls"
        }
      ],
      usage
    }
  }
}

const chatEvents = (body: unknown, call: { function: object } | undefined) => {
  const withUsage = at(body, "stream_options", "include_usage") === true
  const chunk = (choices: ReadonlyArray<object>, more: object = {}) =>
    sse({
      ...chatHead(body),
      object: "chat.completion.chunk",
      choices,
      ...(withUsage ? { usage: null } : {}),
      obfuscation: "x9",
      ...more
    })
  const choice = (delta: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }])
  const named = { ...call, index: 0, function: { ...call?.function, arguments: "" } }
  const deltas =
    call === undefined
      ? piecesOf(body).map((content) => ({ content }))
      : [
          { tool_calls: [named] },
          ...halvesOf(argumentsOf(body)).map((half) => ({
            tool_calls: [{ index: 0, function: { arguments: half } }]
          }))
        ]
  return [
    choice({ role: "assistant", content: call === undefined ? "" : null, refusal: null }),
    ...deltas.map((delta) => choice(delta)),
    choice({}, call === undefined ? "stop" : "tool_calls"),
    ...(withUsage ? [chunk([], { usage })] : []),
    "data: [DONE]\n\n"
  ]
}

const responsesUsage = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 10,
  output_tokens_details: { reasoning_tokens: 4 },
  total_tokens: 30
}

const responseOf = (body: unknown, status: string, output: ReadonlyArray<object>) => ({
  id: "resp_rec1",
  object: "response",
  created_at: 1_763_800_000,
  status,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: at(body, "instructions") ?? null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  model: `${at(body, "model")}-2024-08-06`,
  output,
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: "default",
  store: at(body, "store") ?? true,
  temperature: 1,
  text: { format: at(body, "text", "format") ?? { type: "text" }, verbosity: "medium" },
  tool_choice: "auto",
  tools: at(body, "tools") ?? [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  usage: status === "completed" ? responsesUsage : null,
  user: null
})

const partOf = (content: string) => ({
  type: "output_text",
  annotations: [],
  logprobs: [],
  text: content
})

const responses = (body: unknown): Recorded => {
  const name = toolOf(body)
  const content = piecesOf(body).join("")
  const reasoning = { id: "rs_rec1", type: "reasoning", summary: [] }
  const item =
    name === undefined
      ? {
          id: "msg_rec1",
          type: "message",
          status: "completed",
          content: [partOf(content)],
          role: "assistant"
        }
      : {
          id: "fc_rec1",
          type: "function_call",
          status: "completed",
          arguments: argumentsOf(body),
          call_id: "call_rec1",
          name
        }
  const whole = responseOf(body, "completed", [reasoning, item])
  if (at(body, "stream") !== true) return { json: whole }
  const begun = responseOf(body, "in_progress", [])
  const place = { item_id: item.id, output_index: 1 }
  const inText = { ...place, content_index: 0 }
  const textDelta = (delta: string) => ({
    type: "response.output_text.delta",
    ...inText,
    delta,
    logprobs: [],
    obfuscation: "x9"
  })
  const argumentsDelta = (delta: string) => ({
    type: "response.function_call_arguments.delta",
    ...place,
    delta
  })
  const events: ReadonlyArray<object> = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    { type: "response.output_item.added", output_index: 0, item: reasoning },
    { type: "response.output_item.done", output_index: 0, item: reasoning },
    {
      type: "response.output_item.added",
      output_index: 1,
      item: {
        ...item,
        status: "in_progress",
        ...(name === undefined ? { content: [] } : { arguments: "" })
      }
    },
    ...(name === undefined
      ? [
          { type: "response.content_part.added", ...inText, part: partOf("") },
          ...piecesOf(body).map(textDelta),
          { type: "response.output_text.done", ...inText, text: content, logprobs: [] },
          { type: "response.content_part.done", ...inText, part: partOf(content) }
        ]
      : [
          ...halvesOf(argumentsOf(body)).map(argumentsDelta),
          {
            type: "response.function_call_arguments.done",
            ...place,
            name,
            arguments: argumentsOf(body)
          }
        ]),
    { type: "response.output_item.done", output_index: 1, item },
    { type: "response.completed", response: whole }
  ]
  return {
    events: events.map((event, sequence_number) => {
      const type = String(at(event, "type"))
      return `event: ${type}\n${sse({ ...event, sequence_number })}`
    })
  }
}

const embeddings = (body: unknown): Recorded => {
  const input = at(body, "input")
  const values = [0.25, -0.5, 0.75]
  const packed = Buffer.from(new Float32Array(values).buffer).toString("base64")
  const embedding = at(body, "encoding_format") === "base64" ? packed : values
  return {
    json: {
      object: "list",
      data: [input].flat().map((_, index) => ({ object: "embedding", index, embedding })),
      model: at(body, "model"),
      usage: { prompt_tokens: 8, total_tokens: 8 }
    }
  }
}

export const record = (path: string, body: unknown): Recorded => {
  switch (path) {
    case "/v1/chat/completions":
      return chat(body)
    case "/v1/responses":
      return responses(body)
    case "/v1/responses/input_tokens":
      return { json: { object: "response.input_tokens", input_tokens: 20 } }
    case "/v1/embeddings":
      return embeddings(body)
    default:
      return undefined
  }
}
