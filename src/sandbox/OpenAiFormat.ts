import { piecesOf, textOf } from "./ChatContent.ts"
import type { Choice, Said } from "./ChatContent.ts"

/** A fixed time, so that the same request gives the same bytes. In Unix seconds. */
export const createdSeconds = 1_735_689_600

const usageOf = ({ inputTokens, outputTokens }: Said) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 }
})

const idOf = ({ seed }: Said): string => `chatcmpl-${seed.slice(0, 29)}`

const finishOf = ({ isCut, tool }: Choice): string =>
  tool === undefined ? (isCut ? "length" : "stop") : "tool_calls"

const toolCallsOf = ({ seed }: Said, { tool }: Choice, index: number) =>
  tool === undefined
    ? undefined
    : [
        {
          id: `call_${index}${seed.slice(0, 23)}`,
          type: "function",
          function: { name: tool.name, arguments: JSON.stringify(tool.arguments) }
        }
      ]

/** vendors.md A3. */
export const chatAnswer = (said: Said) => ({
  id: idOf(said),
  object: "chat.completion",
  created: createdSeconds,
  model: said.model,
  choices: said.choices.map((choice, index) => {
    const calls = toolCallsOf(said, choice, index)
    return {
      index,
      message: {
        role: "assistant",
        content: calls === undefined ? textOf(choice) : null,
        refusal: null,
        ...(calls === undefined ? {} : { tool_calls: calls })
      },
      logprobs: null,
      finish_reason: finishOf(choice)
    }
  }),
  usage: usageOf(said),
  service_tier: "default",
  system_fingerprint: "fp_simulated"
})

/** The same answer as server-sent events, a word each. */
export const chatEvents = (said: Said, withUsage: boolean): ReadonlyArray<string> => {
  const head = {
    id: idOf(said),
    object: "chat.completion.chunk",
    created: createdSeconds,
    model: said.model,
    system_fingerprint: "fp_simulated"
  }
  const usage = withUsage ? { usage: null } : {}
  const chunk = (index: number, delta: unknown, finish: string | null) =>
    event({
      ...head,
      choices: [{ index, delta, logprobs: null, finish_reason: finish }],
      ...usage
    })
  return [
    ...said.choices.flatMap((choice, index) => [
      chunk(index, { role: "assistant", content: "", refusal: null }, null),
      ...deltasOf(said, choice, index).map((delta) => chunk(index, delta, null)),
      chunk(index, {}, finishOf(choice))
    ]),
    ...(withUsage ? [event({ ...head, choices: [], usage: usageOf(said) })] : []),
    "data: [DONE]\n\n"
  ]
}

/** A tool's call comes as OpenAI sends it: its name first, its arguments behind. */
const deltasOf = (said: Said, choice: Choice, index: number): ReadonlyArray<object> => {
  const [call] = toolCallsOf(said, choice, index) ?? []
  if (call === undefined) return piecesOf(choice).map((content) => ({ content }))
  const named = { ...call, function: { ...call.function, arguments: "" } }
  const rest = { function: { arguments: call.function.arguments } }
  return [named, rest].map((part) => ({ tool_calls: [{ index: 0, ...part }] }))
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
