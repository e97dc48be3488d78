import { textDeltas, textOf } from "./Completion.ts"
import type { Choice, Completion } from "./Completion.ts"

const finishOf = ({ isTruncated }: Choice): string => (isTruncated ? "MAX_TOKENS" : "STOP")

const chunk = (
  completion: Completion,
  outputTokens: number,
  candidates: ReadonlyArray<object>
) => ({
  candidates,
  usageMetadata: {
    promptTokenCount: completion.inputTokens,
    candidatesTokenCount: outputTokens,
    totalTokenCount: completion.inputTokens + outputTokens
  },
  modelVersion: completion.model,
  responseId: completion.seed.slice(0, 22)
})

const candidate = (index: number, part: object, finish: object) => ({
  content: { role: "model", parts: [part] },
  ...finish,
  index
})

const callOf = ({ tool }: Choice): object | undefined =>
  tool && { functionCall: { name: tool.name, args: tool.arguments } }

/** docs/reference/vendors.md#gemini-contents */
export const generateContentResponse = (completion: Completion) =>
  chunk(
    completion,
    completion.outputTokens,
    completion.choices.map((choice, index) =>
      candidate(index, callOf(choice) ?? { text: textOf(choice) }, {
        finishReason: finishOf(choice)
      })
    )
  )

/** The same response in chunks, one per word. Usage is cumulative. */
export const generateContentChunks = (completion: Completion): ReadonlyArray<object> => {
  const parts = completion.choices.flatMap((choice, index) => {
    const call = callOf(choice)
    const pieces = call === undefined ? textDeltas(choice).map((text) => ({ text })) : [call]
    return pieces.map((part, at) =>
      candidate(index, part, at === pieces.length - 1 ? { finishReason: finishOf(choice) } : {})
    )
  })
  return parts.map((part, at) =>
    chunk(completion, at === parts.length - 1 ? completion.outputTokens : at + 1, [part])
  )
}
