import { piecesOf, textOf } from "./ChatContent.ts"
import type { Said } from "./ChatContent.ts"
import { createdSeconds } from "./OpenAiFormat.ts"

const usageOf = ({ inputTokens, outputTokens }: Said) => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: outputTokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: inputTokens + outputTokens
})

const responseOf = (said: Said, status: string, output: ReadonlyArray<object>) => ({
  id: `resp_${said.seed.slice(0, 32)}`,
  object: "response",
  created_at: createdSeconds,
  status,
  background: false,
  error: null,
  incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model: said.model,
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
  usage: status === "in_progress" ? null : usageOf(said)
})

const endOf = ({ choices: [choice] }: Said): string => (choice.isCut ? "incomplete" : "completed")

/** The one thing that is put out: a message, or the call of a function; `text` so far. */
const itemOf = (said: Said, status: string, text: string) => {
  const { seed } = said
  const [{ tool }] = said.choices
  const id = seed.slice(0, 32)
  return tool === undefined
    ? {
        id: `msg_${id}`,
        type: "message",
        status,
        role: "assistant",
        content: status === "in_progress" ? [] : [partOf(text)]
      }
    : {
        id: `fc_${id}`,
        type: "function_call",
        status,
        call_id: `call_${seed.slice(0, 24)}`,
        name: tool.name,
        arguments: text
      }
}

const partOf = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] })

const wholeOf = ({ choices: [choice] }: Said): string =>
  choice.tool === undefined ? textOf(choice) : JSON.stringify(choice.tool.arguments)

/** The answer of `/v1/responses`. vendors.md A3. */
export const responsesAnswer = (said: Said) =>
  responseOf(said, endOf(said), [itemOf(said, endOf(said), wholeOf(said))])

/** The same as server-sent events, numbered, a word each. */
export const responsesEvents = (said: Said): ReadonlyArray<string> => {
  const end = endOf(said)
  const { id } = itemOf(said, end, "")
  const begun = responseOf(said, "in_progress", [])
  const place = { item_id: id, output_index: 0 }
  const events: ReadonlyArray<readonly [type: string, data: object]> = [
    ["response.created", { response: begun }],
    ["response.in_progress", { response: begun }],
    ["response.output_item.added", { output_index: 0, item: itemOf(said, "in_progress", "") }],
    ...(said.choices[0].tool === undefined ? textEvents(said, place) : callEvents(said, place)),
    ["response.output_item.done", { output_index: 0, item: itemOf(said, end, wholeOf(said)) }],
    [`response.${end}`, { response: responsesAnswer(said) }]
  ]
  return events.map(
    ([type, data], index) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: index, ...data })}\n\n`
  )
}

type Events = ReadonlyArray<readonly [type: string, data: object]>

const textEvents = (said: Said, place: object): Events => {
  const at = { ...place, content_index: 0 }
  const text = wholeOf(said)
  return [
    ["response.content_part.added", { ...at, part: partOf("") }],
    ...piecesOf(said.choices[0]).map(
      (delta) => ["response.output_text.delta", { ...at, delta, logprobs: [] }] as const
    ),
    ["response.output_text.done", { ...at, text, logprobs: [] }],
    ["response.content_part.done", { ...at, part: partOf(text) }]
  ]
}

const callEvents = (said: Said, place: object): Events => {
  const whole = wholeOf(said)
  const name = said.choices[0].tool?.name
  return [
    ["response.function_call_arguments.delta", { ...place, delta: whole }],
    ["response.function_call_arguments.done", { ...place, name, arguments: whole }]
  ]
}
