import { createHash } from "node:crypto"
import { at } from "../domain/Json.ts"
import type { Heard } from "./ChatContent.ts"

const dimensionsMax = 3072

/** Lengths of OpenAI's own vectors. */
const dimensionsOf = (model: string): number => (model.includes("-large") ? dimensionsMax : 1536)

/** One text, or one text in tokens, is one input; else each element is. */
const inputsOf = (input: unknown): ReadonlyArray<unknown> =>
  Array.isArray(input) && typeof input[0] !== "number" ? input : [input]

/** OpenAI takes so many at most. */
export const inputsMax = 2048

export const hasTooManyInputs = (body: unknown): boolean =>
  inputsOf(at(body, "input")).length > inputsMax

/** Unit vectors, from a hash of each input. vendors.md A3. */
export const embeddingsAnswer = ({ body, said }: Heard) => {
  const asked = at(body, "dimensions")
  const dimensions =
    typeof asked === "number" && asked >= 1
      ? Math.min(Math.floor(asked), dimensionsMax)
      : dimensionsOf(said.model)
  const isBase64 = at(body, "encoding_format") === "base64"
  return {
    object: "list",
    data: inputsOf(at(body, "input")).map((input, index) => {
      const values = vector(JSON.stringify(input) ?? "", dimensions)
      return { object: "embedding", index, embedding: isBase64 ? base64(values) : values }
    }),
    model: said.model,
    usage: { prompt_tokens: said.inputTokens, total_tokens: said.inputTokens }
  }
}

/** Little-endian 32-bit numbers: what OpenAI's own clients ask for. */
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

/** Nothing is flagged. */
export const moderationsAnswer = ({ body, said }: Heard) => ({
  id: `modr-${said.seed.slice(0, 24)}`,
  model: said.model === "simulated" ? "omni-moderation-latest" : said.model,
  results: inputsOf(at(body, "input")).map(() => ({
    flagged: false,
    categories: Object.fromEntries(harms.map((harm) => [harm, false])),
    category_scores: Object.fromEntries(harms.map((harm) => [harm, 0])),
    category_applied_input_types: Object.fromEntries(harms.map((harm) => [harm, ["text"]]))
  }))
})
