import { textDeltas, textOf } from "./Completion.ts"
import type { Choice, Completion } from "./Completion.ts"

const message = (completion: Completion) => ({
  id: `msg_${completion.seed.slice(0, 24)}`,
  type: "message",
  role: "assistant",
  model: completion.model
})

const stopOf = ({ choices: [choice] }: Completion) => ({
  stop_reason: reasonOf(choice),
  stop_sequence: choice.stoppedBy ?? null
})

const reasonOf = ({ isTruncated, stoppedBy, tool }: Choice): string => {
  if (tool !== undefined) return "tool_use"
  if (stoppedBy !== undefined) return "stop_sequence"
  return isTruncated ? "max_tokens" : "end_turn"
}

const usageOf = ({ inputTokens }: Completion, outputTokens: number) => ({
  input_tokens: inputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens
})

/** The content block. Input and text are empty until the block is complete. */
const blockOf = ({ choices: [choice], seed }: Completion, isWhole: boolean) =>
  choice.tool === undefined
    ? { type: "text", text: isWhole ? textOf(choice) : "" }
    : {
        type: "tool_use",
        id: `toolu_${seed.slice(0, 24)}`,
        name: choice.tool.name,
        input: isWhole ? choice.tool.arguments : {}
      }

/** docs/reference/vendors.md#anthropic-messages */
export const anthropicMessage = (completion: Completion) => ({
  ...message(completion),
  content: [blockOf(completion, true)],
  ...stopOf(completion),
  usage: usageOf(completion, completion.outputTokens)
})

const deltasOf = ({ choices: [choice] }: Completion): ReadonlyArray<object> =>
  choice.tool === undefined
    ? textDeltas(choice).map((text) => ({ type: "text_delta", text }))
    : [{ type: "input_json_delta", partial_json: JSON.stringify(choice.tool.arguments) }]

/** The same message as server-sent events, one per word. Usage is cumulative. */
export const anthropicMessageEvents = (completion: Completion): ReadonlyArray<string> => [
  event("message_start", {
    message: {
      ...message(completion),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: usageOf(completion, 1)
    }
  }),
  event("content_block_start", { index: 0, content_block: blockOf(completion, false) }),
  event("ping", {}),
  ...deltasOf(completion).map((delta) => event("content_block_delta", { index: 0, delta })),
  event("content_block_stop", { index: 0 }),
  event("message_delta", {
    delta: stopOf(completion),
    usage: usageOf(completion, completion.outputTokens)
  }),
  event("message_stop", {})
]

const event = (type: string, data: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
