import { Result } from "effect"
import { createHash } from "node:crypto"
import { at } from "../domain/json/Json.ts"
import { documentOf, valueWithTexts } from "../domain/json/JsonDocument.ts"
import { atOnce } from "../domain/shares/Slices.ts"
import type { UpstreamRequest } from "../vendors/upstream/UpstreamExchange.ts"
import { structuredOutputOf } from "./StructuredOutput.ts"
import { toolCallOf } from "./ToolCalls.ts"
import type { ToolCall } from "./ToolCalls.ts"

/** One of the requested choices. */
export interface Choice {
  /** The text as one string per token. Empty for a tool call. */
  readonly tokens: ReadonlyArray<string>
  readonly tool: ToolCall | undefined
  /** Whether the token limit ended the text. */
  readonly isTruncated: boolean
  /** The requested sequence before which the text ends. */
  readonly stoppedBy?: string
}

/** The output of a language model: text or a tool call. */
export type Answer = string | ToolCall

/** The simulated output of a language model. The same for equal requests. */
export interface Completion {
  /** Hex digits for ids. */
  readonly seed: string
  readonly model: string
  readonly choices: readonly [Choice, ...Array<Choice>]
  readonly inputTokens: number
  readonly outputTokens: number
}

/** A parsed request with its simulated completion. */
export interface ParsedRequest {
  readonly body: unknown
  readonly stream: boolean
  readonly completion: Completion
}

const sentence =
  "This answer comes from the built-in simulator: set a vendor key to reach the real model."

/** Splits a text into tokens, one per word. */
const tokensIn = (text: string): ReadonlyArray<string> => text.split(/(?= )/u)
const sentenceTokens = tokensIn(sentence)

/** The vendors' usual estimate, used for input and for the JSON of an answer. */
const bytesPerToken = 4

/** The maximum of OpenAI. */
const choicesMax = 128

/** Bytes hashed at each end of a body, because hashing all of a large body would block the event loop. */
const hashedBytes = 4 * 1024 * 1024

export const parseRequest = (
  request: Pick<UpstreamRequest, "body" | "path">,
  answer?: Answer
): ParsedRequest => {
  const document = Result.getOrUndefined(documentOf(request.body))
  const body = document && atOnce(valueWithTexts(document))
  const seed = createHash("sha256")
    .update(request.path)
    .update(request.body.subarray(0, hashedBytes))
    .update(request.body.subarray(hashedBytes).subarray(-hashedBytes))
    .digest("hex")
  const model = at(body, "model")
  const choice = choiceOf(body, answer)
  const more = Array.from({ length: choicesOf(body) - 1 }, () => choice)
  return {
    body,
    stream: at(body, "stream") === true || request.path.endsWith(":streamGenerateContent"),
    completion: {
      seed,
      model: typeof model === "string" ? model : (pathModel(request.path) ?? "simulated"),
      choices: [choice, ...more],
      inputTokens: Math.max(1, Math.ceil(request.body.length / bytesPerToken)),
      outputTokens: tokensOf(choice) * (1 + more.length)
    }
  }
}

const pathModel = (path: string): string | undefined => /\/models\/([^/:]+):/u.exec(path)?.[1]

const tokensOf = ({ tokens, tool }: Choice): number =>
  tool === undefined ? tokens.length : Math.ceil(JSON.stringify(tool).length / bytesPerToken)

const wholeNumber = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? Math.max(1, Math.floor(value)) : undefined

const choicesOf = (body: unknown): number =>
  Math.min(
    choicesMax,
    wholeNumber(
      at(body, "n") ??
        at(body, "generationConfig", "candidateCount") ??
        at(body, "generation_config", "candidate_count")
    ) ?? 1
  )

/** Limits the output, because a tool's example may be as large as the body. */
const outputTokensMax = 16_384

const limitOf = (body: unknown): number =>
  Math.min(outputTokensMax, requestedTokens(body) ?? Infinity)

const requestedTokens = (body: unknown): number | undefined =>
  wholeNumber(
    at(body, "max_completion_tokens") ??
      at(body, "max_output_tokens") ??
      at(body, "max_tokens") ??
      at(body, "generationConfig", "maxOutputTokens") ??
      at(body, "generation_config", "max_output_tokens")
  )

/** `answer` replaces the simulator's own text, structured output and tool calls. */
const choiceOf = (body: unknown, answer: Answer | undefined): Choice => {
  const limit = limitOf(body)
  const text = typeof answer === "string" ? answer : undefined
  const tool =
    typeof answer === "object" ? answer : text === undefined ? toolCallOf(body) : undefined
  const call = { tokens: [], tool, isTruncated: false }
  if (tool !== undefined && tokensOf(call) <= limit) return call
  const all = tool === undefined ? textTokens(body, text) : []
  const tokens = all.slice(0, limit)
  const stop = stopIn(tokens.join(""), stopsOf(body))
  return stop === undefined
    ? { tokens, tool: undefined, isTruncated: tool !== undefined || all.length > limit }
    : {
        tokens: firstOf(tokens, stop.index),
        tool: undefined,
        isTruncated: false,
        stoppedBy: stop.sequence
      }
}

/** The most sequences that are looked for. OpenAI accepts four, Gemini five. */
const stopsMax = 16

const stopsOf = (body: unknown): ReadonlyArray<string> =>
  [
    at(body, "stop") ??
      at(body, "stop_sequences") ??
      at(body, "generationConfig", "stopSequences") ??
      at(body, "generation_config", "stop_sequences")
  ]
    .flat()
    .slice(0, stopsMax)
    .filter((it) => typeof it === "string")
    .filter((it) => it !== "")

interface Stop {
  readonly index: number
  readonly sequence: string
}

/** The sequence that comes first in the text. */
const stopIn = (text: string, sequences: ReadonlyArray<string>): Stop | undefined =>
  sequences
    .map((sequence) => ({ sequence, index: text.indexOf(sequence) }))
    .filter(({ index }) => index >= 0)
    .sort((one, other) => one.index - other.index)[0]

/** The tokens of the first `length` characters. */
const firstOf = (tokens: ReadonlyArray<string>, length: number): ReadonlyArray<string> => {
  const first: Array<string> = []
  let rest = length
  for (const token of tokens) {
    if (rest <= 0) break
    first.push(token.slice(0, rest))
    rest -= token.length
  }
  return first
}

const textTokens = (body: unknown, answer: string | undefined): ReadonlyArray<string> => {
  if (answer !== undefined) return tokensIn(answer)
  const json = structuredOutputOf(body)
  // Does not split a character of two UTF-16 units
  return json === undefined ? sentenceTokens : (json.match(/.{1,4}/gsu) ?? [])
}

/** The most deltas of a stream, so that a long text does not take long. */
const deltasMax = 64

/** The text of a choice in pieces: one per token, or larger pieces if there are many tokens; an empty one of no text. */
export const textDeltas = ({ tokens }: Choice): ReadonlyArray<string> => {
  if (tokens.length === 0) return [""]
  const each = Math.ceil(tokens.length / deltasMax)
  return Array.from({ length: Math.ceil(tokens.length / Math.max(1, each)) }, (_, index) =>
    tokens.slice(index * each, (index + 1) * each).join("")
  )
}

export const textOf = ({ tokens }: Choice): string => tokens.join("")
