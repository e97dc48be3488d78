import { createHash } from "node:crypto"
import { at } from "../domain/json/Json.ts"
import type { ParsedRequest } from "./Completion.ts"

const dimensionsMax = 3072

/** Default dimensions of OpenAI's vectors. */
const dimensionsOf = (model: string): number => (model.includes("-large") ? dimensionsMax : 1536)

/** A text, or a list of tokens, is a single input. In any other list, each element is one. */
const inputsOf = (input: unknown): ReadonlyArray<unknown> =>
  Array.isArray(input) && typeof input[0] !== "number" ? input : [input]

/** The maximum of OpenAI. */
export const inputsMax = 2048

export const hasTooManyInputs = (body: unknown): boolean =>
  inputsOf(at(body, "input")).length > inputsMax

/** Unit vectors made from a hash of each input. docs/reference/vendors.md#openai-embeddings */
export const embeddingsBody = ({ body, completion }: ParsedRequest) => {
  const dimensions = dimensionsFrom(at(body, "dimensions"), dimensionsOf(completion.model))
  const isBase64 = at(body, "encoding_format") === "base64"
  return {
    object: "list",
    data: inputsOf(at(body, "input")).map((input, index) => {
      const values = vector(JSON.stringify(input) ?? "", dimensions)
      return { object: "embedding", index, embedding: isBase64 ? base64(values) : values }
    }),
    model: completion.model,
    usage: { prompt_tokens: completion.inputTokens, total_tokens: completion.inputTokens }
  }
}

/** Default dimensions of Gemini's vectors. */
const geminiDimensions = 3072

/** The maximum of Gemini. */
export const requestsMax = 100

const requestsOf = (body: unknown): ReadonlyArray<unknown> => {
  const requests = at(body, "requests")
  return Array.isArray(requests) ? requests : []
}

export const hasTooManyRequests = (body: unknown): boolean => requestsOf(body).length > requestsMax

const geminiEmbedding = (request: unknown) => {
  const requested =
    at(request, "outputDimensionality") ??
    at(request, "output_dimensionality") ??
    at(request, "embedContentConfig", "outputDimensionality")
  const content = JSON.stringify(at(request, "content")) ?? ""
  return { values: vector(content, dimensionsFrom(requested, geminiDimensions)) }
}

/** One vector, or one per request of a batch. docs/reference/vendors.md#gemini-embeddings */
export const geminiEmbeddingsBody = ({ body, completion }: ParsedRequest, isBatch: boolean) => ({
  ...(isBatch
    ? { embeddings: requestsOf(body).map(geminiEmbedding) }
    : { embedding: geminiEmbedding(body) }),
  usageMetadata: { promptTokenCount: completion.inputTokens }
})

const dimensionsFrom = (requested: unknown, usual: number): number =>
  typeof requested === "number" && requested >= 1
    ? Math.min(Math.floor(requested), dimensionsMax)
    : usual

/** Little-endian 32-bit floats, which OpenAI's clients request by default. */
const base64 = (values: ReadonlyArray<number>): string => {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString("base64")
}

const vector = (text: string, dimensions: number): ReadonlyArray<number> => {
  const seed = createHash("sha512").update(text).digest()
  const values = Array.from(
    { length: dimensions },
    (_, index) => (seed[index % seed.length] ?? 0) - 127.5 + (index % 7)
  )
  const length = Math.hypot(...values)
  return values.map((value) => Number((value / length).toFixed(8)))
}

const harms = [
  "harassment",
  "harassment/threatening",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm",
  "self-harm/instructions",
  "self-harm/intent",
  "sexual",
  "sexual/minors",
  "violence",
  "violence/graphic"
]

/** A moderation result in which nothing is flagged. */
export const moderationsBody = ({ body, completion }: ParsedRequest) => ({
  id: `modr-${completion.seed.slice(0, 24)}`,
  model: completion.model === "simulated" ? "omni-moderation-latest" : completion.model,
  results: inputsOf(at(body, "input")).map(() => ({
    flagged: false,
    categories: Object.fromEntries(harms.map((harm) => [harm, false])),
    category_scores: Object.fromEntries(harms.map((harm) => [harm, 0])),
    category_applied_input_types: Object.fromEntries(harms.map((harm) => [harm, ["text"]]))
  }))
})
