import { piecesOf, textOf } from "./ChatContent.ts"
import type { Choice, Said } from "./ChatContent.ts"

const finishOf = ({ isCut }: Choice): string => (isCut ? "MAX_TOKENS" : "STOP")

const chunk = (said: Said, outputTokens: number, candidates: ReadonlyArray<object>) => ({
  candidates,
  usageMetadata: {
    promptTokenCount: said.inputTokens,
    candidatesTokenCount: outputTokens,
    totalTokenCount: said.inputTokens + outputTokens
  },
  modelVersion: said.model,
  responseId: said.seed.slice(0, 22)
})

const candidate = (index: number, part: object, finish: object) => ({
  content: { role: "model", parts: [part] },
  ...finish,
  index
})

const callOf = ({ tool }: Choice): object | undefined =>
  tool && { functionCall: { name: tool.name, args: tool.arguments } }

/** vendors.md A2. */
export const geminiAnswer = (said: Said) =>
  chunk(
    said,
    said.outputTokens,
    said.choices.map((choice, index) =>
      candidate(index, callOf(choice) ?? { text: textOf(choice) }, {
        finishReason: finishOf(choice)
      })
    )
  )

/** The same answer in chunks, a word each; the usage is cumulative. */
export const geminiChunks = (said: Said): ReadonlyArray<object> => {
  const parts = said.choices.flatMap((choice, index) => {
    const call = callOf(choice)
    const pieces = call === undefined ? piecesOf(choice).map((text) => ({ text })) : [call]
    return pieces.map((part, at) =>
      candidate(index, part, at === pieces.length - 1 ? { finishReason: finishOf(choice) } : {})
    )
  })
  return parts.map((part, at) =>
    chunk(said, at === parts.length - 1 ? said.outputTokens : at + 1, [part])
  )
}
