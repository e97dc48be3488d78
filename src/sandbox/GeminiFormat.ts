import { encode } from "fast-png"
import { at } from "../domain/json/Json.ts"
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

const candidate = (index: number, parts: ReadonlyArray<object>, finish: object) => ({
  content: { role: "model", parts },
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
      candidate(index, [callOf(choice) ?? { text: textOf(choice) }], {
        finishReason: finishOf(choice)
      })
    )
  )

/** The same response in chunks, one per word. Usage is cumulative. */
export const generateContentChunks = (completion: Completion): ReadonlyArray<object> => {
  const parts = completion.choices.flatMap((choice, index) => {
    const call = callOf(choice)
    const pieces = call === undefined ? textDeltas(choice).map((text) => ({ text })) : [call]
    return pieces.map((part, place) =>
      candidate(
        index,
        [part],
        place === pieces.length - 1 ? { finishReason: finishOf(choice) } : {}
      )
    )
  })
  return parts.map((part, place) =>
    chunk(completion, place === parts.length - 1 ? completion.outputTokens : place + 1, [part])
  )
}

/** Whether the request asks for pictures. */
export const asksForPicture = (body: unknown): boolean => modalitiesOf(body).includes("IMAGE")

const modalitiesOf = (body: unknown): ReadonlyArray<unknown> => {
  const modalities =
    at(body, "generationConfig", "responseModalities") ??
    at(body, "generation_config", "response_modalities")
  return Array.isArray(modalities) ? modalities : []
}

const pictureTokens = 1120
const pictureSide = 1024

/** A response with a picture of one color in each choice, after a text if the request asks for text too. */
export const pictureResponse = (body: unknown, completion: Completion) => {
  const data = Buffer.from(pictureOf(completion)).toString("base64")
  const picture = { inlineData: { mimeType: "image/png", data } }
  const hasText = modalitiesOf(body).includes("TEXT")
  const candidates = completion.choices.map((choice, index) =>
    candidate(index, hasText ? [{ text: textOf(choice) }, picture] : [picture], {
      finishReason: "STOP"
    })
  )
  const tokenCount = pictureTokens * candidates.length
  const response = chunk(
    completion,
    tokenCount + (hasText ? completion.outputTokens : 0),
    candidates
  )
  const details = { candidatesTokensDetails: [{ modality: "IMAGE", tokenCount }] }
  return { ...response, usageMetadata: { ...response.usageMetadata, ...details } }
}

const pictureOf = ({ seed }: Completion): Uint8Array =>
  encode({
    width: pictureSide,
    height: pictureSide,
    data: new Uint8Array(pictureSide * (pictureSide / 8)),
    depth: 1,
    channels: 1,
    palette: [[...Buffer.from(seed.slice(0, 6), "hex")]]
  })
