import { textDeltas, textOf } from "./Completion.ts"
import type { Completion } from "./Completion.ts"
import { argumentText, createdSeconds } from "./OpenAiFormat.ts"

const usageOf = ({ inputTokens, outputTokens }: Completion) => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: outputTokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: inputTokens + outputTokens
})

const responseOf = (
  { more, ...completion }: SimulatedResponse,
  status: string,
  output: ReadonlyArray<object>
) => ({
  id: `resp_${completion.seed.slice(0, 32)}`,
  object: "response",
  created_at: createdSeconds,
  status,
  background: false,
  error: null,
  incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model: completion.model,
  output,
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  truncation: "disabled",
  ...more,
  usage: status === "in_progress" ? null : usageOf(completion)
})

/** A completion, and members of its response that not every response has. */
interface SimulatedResponse extends Completion {
  readonly more?: object
}

const endOf = ({ choices: [choice] }: Completion): string =>
  choice.isTruncated ? "incomplete" : "completed"

/** The output item, a message or a tool call, with its text so far. */
const itemOf = (completion: Completion, status: string, text: string) => {
  const { seed } = completion
  const [{ tool }] = completion.choices
  const id = seed.slice(0, 32)
  if (tool === undefined) {
    const content = status === "in_progress" ? [] : [partOf(text)]
    return { id: `msg_${id}`, type: "message", status, role: "assistant", content }
  }
  const { arguments: given, ...named } = tool
  const call = { status, call_id: `call_${seed.slice(0, 24)}`, ...named }
  return typeof given === "string"
    ? { id: `ctc_${id}`, type: "custom_tool_call", ...call, input: text }
    : { id: `fc_${id}`, type: "function_call", ...call, arguments: text }
}

const partOf = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] })

const wholeOf = ({ choices: [choice] }: Completion): string =>
  choice.tool === undefined ? textOf(choice) : argumentText(choice.tool)

/** docs/reference/vendors.md#openai-responses */
export const openAiResponse = (completion: SimulatedResponse) =>
  responseOf(completion, endOf(completion), [
    itemOf(completion, endOf(completion), wholeOf(completion))
  ])

/** The same response as numbered server-sent events, one per word. */
export const openAiResponseEvents = (completion: SimulatedResponse): ReadonlyArray<string> => {
  const end = endOf(completion)
  const { id } = itemOf(completion, end, "")
  const begun = responseOf(completion, "in_progress", [])
  const place = { item_id: id, output_index: 0 }
  const events: ReadonlyArray<readonly [type: string, data: object]> = [
    ["response.created", { response: begun }],
    ["response.in_progress", { response: begun }],
    [
      "response.output_item.added",
      { output_index: 0, item: itemOf(completion, "in_progress", "") }
    ],
    ...(completion.choices[0].tool === undefined
      ? textEvents(completion, place)
      : callEvents(completion, place)),
    [
      "response.output_item.done",
      { output_index: 0, item: itemOf(completion, end, wholeOf(completion)) }
    ],
    [`response.${end}`, { response: openAiResponse(completion) }]
  ]
  return events.map(
    ([type, data], index) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: index, ...data })}\n\n`
  )
}

type Events = ReadonlyArray<readonly [type: string, data: object]>

const textEvents = (completion: Completion, place: object): Events => {
  const at = { ...place, content_index: 0 }
  const text = wholeOf(completion)
  return [
    ["response.content_part.added", { ...at, part: partOf("") }],
    ...textDeltas(completion.choices[0]).map(
      (delta) => ["response.output_text.delta", { ...at, delta, logprobs: [] }] as const
    ),
    ["response.output_text.done", { ...at, text, logprobs: [] }],
    ["response.content_part.done", { ...at, part: partOf(text) }]
  ]
}

const callEvents = (completion: Completion, place: object): Events => {
  const whole = wholeOf(completion)
  const [{ tool }] = completion.choices
  const name = tool?.name
  if (typeof tool?.arguments === "string") {
    return [
      ["response.custom_tool_call_input.delta", { ...place, delta: whole }],
      ["response.custom_tool_call_input.done", { ...place, input: whole }]
    ]
  }
  return [
    ["response.function_call_arguments.delta", { ...place, delta: whole }],
    ["response.function_call_arguments.done", { ...place, name, arguments: whole }]
  ]
}
