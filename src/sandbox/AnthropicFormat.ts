import { piecesOf, textOf } from "./ChatContent.ts"
import type { Said } from "./ChatContent.ts"

const message = (said: Said) => ({
  id: `msg_${said.seed.slice(0, 24)}`,
  type: "message",
  role: "assistant",
  model: said.model
})

const stopOf = ({ choices: [{ isCut, tool }] }: Said): string =>
  tool === undefined ? (isCut ? "max_tokens" : "end_turn") : "tool_use"

const usageOf = ({ inputTokens }: Said, outputTokens: number) => ({
  input_tokens: inputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens
})

/** The one block of the answer; `input` and text stand in it once it is whole. */
const blockOf = ({ choices: [choice], seed }: Said, isWhole: boolean) =>
  choice.tool === undefined
    ? { type: "text", text: isWhole ? textOf(choice) : "" }
    : {
        type: "tool_use",
        id: `toolu_${seed.slice(0, 24)}`,
        name: choice.tool.name,
        input: isWhole ? choice.tool.arguments : {}
      }

/** vendors.md A4. */
export const anthropicAnswer = (said: Said) => ({
  ...message(said),
  content: [blockOf(said, true)],
  stop_reason: stopOf(said),
  stop_sequence: null,
  usage: usageOf(said, said.outputTokens)
})

const deltasOf = ({ choices: [choice] }: Said): ReadonlyArray<object> =>
  choice.tool === undefined
    ? piecesOf(choice).map((text) => ({ type: "text_delta", text }))
    : [{ type: "input_json_delta", partial_json: JSON.stringify(choice.tool.arguments) }]

/** The same answer as server-sent events, a word each; the usage at the end is cumulative. */
export const anthropicEvents = (said: Said): ReadonlyArray<string> => [
  event("message_start", {
    message: {
      ...message(said),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: usageOf(said, 1)
    }
  }),
  event("content_block_start", { index: 0, content_block: blockOf(said, false) }),
  event("ping", {}),
  ...deltasOf(said).map((delta) => event("content_block_delta", { index: 0, delta })),
  event("content_block_stop", { index: 0 }),
  event("message_delta", {
    delta: { stop_reason: stopOf(said), stop_sequence: null },
    usage: usageOf(said, said.outputTokens)
  }),
  event("message_stop", {})
]

const event = (type: string, data: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
