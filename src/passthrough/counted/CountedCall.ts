import { Result } from "effect"
import { chargeUnits } from "../../catalog/ModelPrice.ts"
import type { ModelPrice } from "../../catalog/ModelPrice.ts"
import type { TokenModel } from "../../catalog/OpenRoutes.ts"
import { holdTokens } from "../../catalog/Price.ts"
import type { TokenUsage } from "../../catalog/Price.ts"
import { bytesPerToken } from "../../catalog/Usage.ts"
import type { Credits } from "../../domain/Credits.ts"
import { at } from "../../domain/json/Json.ts"
import { documentOf, isMark, longTextOf } from "../../domain/json/JsonDocument.ts"
import { textBytesMax } from "../../domain/json/JsonLimits.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault, Problem } from "../../domain/Problem.ts"
import type { ReadBody } from "../streams/MeteredBody.ts"
import { tokensOfSound } from "./SoundMeter.ts"
import type { Upload } from "./Upload.ts"

/** A call whose usage the gateway counts itself if its vendor reports none. */
export interface CountedCall {
  /** The most that it can cost. */
  readonly hold: Credits
  /** The usage to charge if the vendor reports no figures. */
  readonly counts: () => TokenUsage
  /** Whether a client that leaves before the response must pay, because the vendor has received the whole request. */
  readonly isBought: () => boolean
  /** Whether the response is audio rather than events or JSON. */
  readonly isSound: boolean
}

const always = () => true

type Counted = Result.Result<CountedCall, Problem>

const refused = (...faults: readonly [FieldFault, ...Array<FieldFault>]): Counted =>
  Result.fail(invalid(faults))

/** Usual speech, and the slowest speech that a hold covers. */
const charactersPerSecond = 15
const slowestPerSecond = 1
const shortestSeconds = 10

const codePointsOf = (text: string): number => {
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** The number of Unicode code points of a text; for a text too long for any model, its bytes. */
const charactersOf = (bytes: Uint8Array, text: string): number => {
  if (!isMark(text)) return codePointsOf(text)
  const document = Result.getOrUndefined(documentOf(bytes))
  const long = document && longTextOf(document, text)
  if (long === undefined) return 0
  return long.rawBytes > textBytesMax ? long.rawBytes : codePointsOf(long.text())
}

/** Plans a text to speak. docs/reference/wallet.md#speech-transcription-and-reranking */
export const speechOf = (
  { bytes, value }: ReadBody,
  model: TokenModel,
  price: ModelPrice
): Counted => {
  const input = at(value, "input")
  const voice = at(value, "voice")
  if (typeof voice === "object" && voice !== null) {
    const detail = "A voice that is stored in the vendor's account is not offered: name another one"
    return refused({ pointer: "#/voice", detail })
  }
  if (typeof input !== "string") return refused({ pointer: "#/input", detail: "Expected a string" })
  const streamFormat = at(value, "stream_format")
  if (streamFormat !== undefined && typeof streamFormat !== "string") {
    return refused({ pointer: "#/stream_format", detail: "Expected a string" })
  }
  const characters = charactersOf(bytes, input)
  const isSound = streamFormat !== "sse"
  if (price.per !== "million_tokens") {
    if (characters > model.inputTokensMax) {
      const detail = `Expected at most ${model.inputTokensMax} characters`
      return refused({ pointer: "#/input", detail })
    }
    const counts = { inputTokens: 0, outputTokens: 0, characters }
    return Result.succeed({
      hold: chargeUnits(price, characters),
      counts: () => counts,
      isBought: always,
      isSound
    })
  }
  const tokensOf = (seconds: number) => Math.min(tokensOfSound(seconds), model.outputTokensMax)
  const longest = tokensOf(Math.max(shortestSeconds, characters / slowestPerSecond))
  const counts = {
    inputTokens: Math.ceil(bytes.length / bytesPerToken),
    outputTokens: tokensOf(characters / charactersPerSecond)
  }
  return Result.succeed({
    hold: holdTokens(price, Math.min(bytes.length, model.inputTokensMax), longest, false),
    counts: () => counts,
    isBought: always,
    isSound
  })
}

/** At Cohere a search covers up to 100 documents, and each part of a longer document counts as one. */
const documentsPerSearch = 100
const bytesPerPart = 250

/** Plans documents to rerank. Cohere counts searches; Jina counts the query once with each document. */
export const rerankOf = (
  { bytes, value }: ReadBody,
  model: TokenModel,
  price: ModelPrice
): Counted => {
  const documents = at(value, "documents")
  const query = at(value, "query")
  if (!Array.isArray(documents) || documents.length === 0) {
    return refused({ pointer: "#/documents", detail: "Expected a list of documents" })
  }
  const count = documents.length
  if (price.per !== "million_tokens") {
    const parts = count + Math.ceil(bytes.length / bytesPerPart)
    const searchesMax = Math.min(Math.ceil(parts / documentsPerSearch), model.inputTokensMax)
    const searches = Math.ceil(count / documentsPerSearch)
    const counts = { inputTokens: 0, outputTokens: 0, searches }
    return Result.succeed({
      hold: chargeUnits(price, searchesMax),
      counts: () => counts,
      isBought: always,
      isSound: false
    })
  }
  const queryBytes =
    typeof query === "string" && !isMark(query) ? Buffer.byteLength(query) : bytes.length
  const tokensMax = Math.min(bytes.length + queryBytes * count, model.inputTokensMax)
  const counts = { inputTokens: Math.ceil(tokensMax / bytesPerToken), outputTokens: 0 }
  return Result.succeed({
    hold: holdTokens(price, tokensMax, 0, false),
    counts: () => counts,
    isBought: always,
    isSound: false
  })
}

/** Tokens per second of audio: at most 25 and usually 10 for the model's input, and 4 for the transcript. */
const heardTokensMax = 25
const heardTokens = 10
const writtenTokens = 4

/** Plans audio to transcribe or translate. */
export const transcriptionOf = (
  upload: Upload,
  { inputTokensMax, outputTokensMax }: TokenModel,
  price: ModelPrice
): CountedCall => {
  const longest = upload.bytesMax / upload.bytesPerSecondMin
  const isBought = () => upload.isComplete
  if (price.per !== "million_tokens") {
    return {
      hold: chargeUnits(price, Math.min(longest, inputTokensMax)),
      counts: () => ({ inputTokens: 0, outputTokens: 0, seconds: upload.seconds }),
      isBought,
      isSound: false
    }
  }
  const tokensMax = Math.min(Math.ceil(longest * heardTokensMax), inputTokensMax)
  return {
    hold: holdTokens(price, tokensMax, outputTokensMax, false),
    counts: () => {
      const heard = Math.min(Math.ceil(upload.seconds * heardTokens), inputTokensMax)
      const outputTokens = Math.min(Math.ceil(upload.seconds * writtenTokens), outputTokensMax)
      return { inputTokens: heard, outputTokens, audioInputTokens: heard }
    },
    isBought,
    isSound: false
  }
}
