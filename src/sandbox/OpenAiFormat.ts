import { textDeltas, textOf } from "./Completion.ts"
import type { Choice, Completion } from "./Completion.ts"
import type { ToolCall } from "./ToolCalls.ts"

/** A fixed time in Unix seconds, so that equal requests get equal bytes. */
export const createdSeconds = 1_735_689_600

const usageOf = ({ inputTokens, outputTokens }: Completion) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 }
})

const idOf = ({ seed }: Completion): string => `chatcmpl-${seed.slice(0, 29)}`

const finishOf = ({ isTruncated, tool }: Choice, isFormer: boolean): string => {
  if (tool !== undefined) return isFormer ? "function_call" : "tool_calls"
  return isTruncated ? "length" : "stop"
}

/** The arguments of a tool call: JSON, or the text for a custom tool. */
export const argumentText = ({ arguments: given }: ToolCall): string =>
  typeof given === "string" ? given : JSON.stringify(given)

const calledWith = (tool: ToolCall, text: string) =>
  typeof tool.arguments === "string"
    ? { custom: { input: text } }
    : { function: { arguments: text } }

const toolCallOf = ({ seed }: Completion, tool: ToolCall, index: number, text: string) => {
  const id = `call_${index}${seed.slice(0, 23)}`
  const { name } = tool
  return typeof tool.arguments === "string"
    ? { id, type: "custom", custom: { name, input: text } }
    : { id, type: "function", function: { name, arguments: text } }
}

const callOf = (completion: Completion, tool: ToolCall, index: number, isFormer: boolean) => {
  const text = argumentText(tool)
  return isFormer
    ? { function_call: { name: tool.name, arguments: text } }
    : { tool_calls: [toolCallOf(completion, tool, index, text)] }
}

/** `isFormer`: a tool is called by OpenAI's former `function_call`. */
export const chatCompletion = (completion: Completion, isFormer = false) => ({
  id: idOf(completion),
  object: "chat.completion",
  created: createdSeconds,
  model: completion.model,
  choices: completion.choices.map((choice, index) => {
    const { tool } = choice
    const call = tool && callOf(completion, tool, index, isFormer)
    return {
      index,
      message: {
        role: "assistant",
        content: call === undefined ? textOf(choice) : null,
        refusal: null,
        ...call
      },
      logprobs: null,
      finish_reason: finishOf(choice, isFormer)
    }
  }),
  usage: usageOf(completion),
  service_tier: "default",
  system_fingerprint: "fp_simulated"
})

/** Where a stream has its usage: in an additional chunk without choices, or in the last chunk of the last choice. */
export type UsagePlace = "added" | "last" | undefined

/** The same completion as server-sent events, one per word. docs/reference/vendors.md#openai-streams */
export const chatCompletionEvents = (
  completion: Completion,
  place: UsagePlace,
  isFormer = false
): ReadonlyArray<string> => {
  const head = {
    id: idOf(completion),
    object: "chat.completion.chunk",
    created: createdSeconds,
    model: completion.model,
    system_fingerprint: "fp_simulated"
  }
  const unused = place === "added" ? { usage: null } : {}
  const chunk = (index: number, delta: unknown, finish: string | null, usage: object = unused) =>
    event({
      ...head,
      choices: [{ index, delta, logprobs: null, finish_reason: finish }],
      ...usage
    })
  const used = { usage: usageOf(completion) }
  const ended = (choice: Choice, index: number) =>
    place === "last" && index === completion.choices.length - 1
      ? chunk(index, {}, finishOf(choice, isFormer), used)
      : chunk(index, {}, finishOf(choice, isFormer))
  return [
    ...completion.choices.flatMap((choice, index) => [
      chunk(index, { role: "assistant", content: "", refusal: null }, null),
      ...deltasOf(completion, choice, index, isFormer).map((delta) => chunk(index, delta, null)),
      ended(choice, index)
    ]),
    ...(place === "added" ? [event({ ...head, choices: [], ...used })] : []),
    "data: [DONE]\n\n"
  ]
}

/** A tool call in the form in which OpenAI streams it: its name, then its arguments. */
const deltasOf = (
  completion: Completion,
  choice: Choice,
  index: number,
  isFormer: boolean
): ReadonlyArray<object> => {
  const { tool } = choice
  if (tool === undefined) return textDeltas(choice).map((content) => ({ content }))
  if (isFormer) {
    const parts = [{ name: tool.name, arguments: "" }, { arguments: argumentText(tool) }]
    return parts.map((part) => ({ function_call: part }))
  }
  const named = toolCallOf(completion, tool, index, "")
  return [named, calledWith(tool, argumentText(tool))].map((part) => ({
    tool_calls: [{ index: 0, ...part }]
  }))
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
