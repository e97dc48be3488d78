import { createHash } from "node:crypto"
import { at } from "../domain/json/Json.ts"
import type { ParsedRequest } from "./Completion.ts"

const dimensionsMax = 3072

/** The default dimensions of models whose vectors are not as long as those of most models of OpenAI. */
const dimensionsByModel: ReadonlyMap<string, number> = new Map([
  ["text-embedding-3-large", dimensionsMax],
  ["mistral-embed", 1024]
])

const dimensionsOf = (model: string): number => dimensionsByModel.get(model) ?? 1536

/** A text, or a list of tokens, is a single input. In any other list, each element is one. */
const inputsOf = (input: unknown): ReadonlyArray<unknown> =>
  Array.isArray(input) && typeof input[0] !== "number" ? input : [input]

/** The maximum of OpenAI. */
export const inputsMax = 2048

export const hasTooManyInputs = (body: unknown): boolean =>
  inputsOf(at(body, "input")).length > inputsMax

/** A body in pieces, because 2,048 vectors take tens of megabytes. */
export type BodyPieces = Generator<Buffer, void>

/**
 * Unit vectors made from a hash of each input; `more` are further members. docs/reference/vendors.md#openai-embeddings
 */
export const embeddingsBody = (
  { body, completion }: ParsedRequest,
  more: Readonly<Record<string, string>> = {}
): BodyPieces => {
  const dimensions = dimensionsFrom(at(body, "dimensions"), dimensionsOf(completion.model))
  const encode = at(body, "encoding_format") === "base64" ? base64 : numbers
  const tokens = completion.inputTokens
  const usage = { prompt_tokens: tokens, total_tokens: tokens }
  const last = { model: completion.model, usage, ...more }
  return listBody(
    '{"object":"list","data":[',
    inputsOf(at(body, "input")),
    (input, index) => {
      const embedding = encode(vector(JSON.stringify(input) ?? "", dimensions))
      return `{"object":"embedding","index":${index},"embedding":${embedding}}`
    },
    `],${JSON.stringify(last).slice(1)}`
  )
}

/** How many embeddings are in one piece; each takes about half a millisecond. */
const embeddingsAtOnce = 4

function* listBody<A>(
  first: string,
  items: ReadonlyArray<A>,
  show: (item: A, index: number) => string,
  last: string
): BodyPieces {
  let text = first
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % embeddingsAtOnce === 0) {
      yield Buffer.from(text)
      text = ""
    }
    text += `${index === 0 ? "" : ","}${show(item, index)}`
  }
  yield Buffer.from(text + last)
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

const geminiEmbedding = (request: unknown): string => {
  const requested =
    at(request, "outputDimensionality") ??
    at(request, "output_dimensionality") ??
    at(request, "embedContentConfig", "outputDimensionality")
  const content = JSON.stringify(at(request, "content")) ?? ""
  return `{"values":${numbers(vector(content, dimensionsFrom(requested, geminiDimensions)))}}`
}

/** One vector, or one per request of a batch. docs/reference/vendors.md#gemini-embeddings */
export const geminiEmbeddingsBody = (
  { body, completion }: ParsedRequest,
  isBatch: boolean
): BodyPieces => {
  const usage = `"usageMetadata":{"promptTokenCount":${completion.inputTokens}}}`
  return isBatch
    ? listBody('{"embeddings":[', requestsOf(body), geminiEmbedding, `],${usage}`)
    : listBody('{"embedding":', [body], geminiEmbedding, `,${usage}`)
}

const dimensionsFrom = (requested: unknown, usual: number): number =>
  typeof requested === "number" && requested >= 1
    ? Math.min(Math.floor(requested), dimensionsMax)
    : usual

/** A vector whose values repeat. */
interface Vector {
  readonly values: ReadonlyArray<number>
  readonly dimensions: number
}

const numbers = ({ dimensions, values }: Vector): string => {
  const whole = values.join(",")
  const parts = Array.from({ length: Math.floor(dimensions / values.length) }, () => whole)
  const rest = values.slice(0, dimensions % values.length)
  return `[${[...parts, ...rest].join(",")}]`
}

/** Little-endian 32-bit floats, which OpenAI's clients request by default. */
const base64 = ({ dimensions, values }: Vector): string => {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeFloatLE(value, index * 4)
  return `"${Buffer.alloc(dimensions * 4, bytes).toString("base64")}"`
}

const hashBytes = 64
const cycle = 7

/** A sum over the hash and a cycle of other numbers, so the values repeat after both have ended together. */
const vector = (text: string, dimensions: number): Vector => {
  const seed = createHash("sha512").update(text).digest()
  const raw = Array.from(
    { length: Math.min(dimensions, hashBytes * cycle) },
    (_, index) => (seed[index % hashBytes] ?? 0) - 127.5 + (index % cycle)
  )
  const squares = (some: ReadonlyArray<number>) => some.reduce((sum, it) => sum + it * it, 0)
  const length = Math.sqrt(
    Math.floor(dimensions / raw.length) * squares(raw) +
      squares(raw.slice(0, dimensions % raw.length))
  )
  return { values: raw.map((value) => Number((value / length).toFixed(8))), dimensions }
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
