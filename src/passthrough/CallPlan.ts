import { Option, Result, Schema } from "effect"
import { faultsOf } from "../catalog/FieldFaults.ts"
import type { OpenRoute, TokenModel, UsageProtocol } from "../catalog/OpenRoutes.ts"
import { holdTokens } from "../catalog/Price.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { hasDuplicateKeys } from "../domain/Json.ts"
import { invalid, problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { hiddenInputOf } from "./HiddenInput.ts"
import { namesStoredItem } from "./KeptState.ts"
import { surchargesOf } from "./Surcharges.ts"

/** What is held for a call, and how its response is metered. */
export type Metered =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Call"; readonly amount: Credits }
  | { readonly _tag: "Tokens"; readonly protocol: UsageProtocol; readonly model: TokenModel }

/** A parsed and priced call: what goes upstream, and the most that it can cost. */
export interface CallPlan {
  readonly metered: Metered
  /** The model that the client named. */
  readonly model: string | null
  readonly hold: Credits
  /** What goes upstream: the client's bytes; in a chat stream also the request for usage figures. */
  readonly body: Uint8Array
  /** The client did not ask for the usage chunk: it is removed from the stream. */
  readonly hidesUsage: boolean
}

const isPositive = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 1

const Limit = Schema.optionalKey(
  Schema.NullOr(
    Schema.Number.check(
      Schema.makeFilter<number>(isPositive, { expected: "a whole number from 1" })
    )
  )
)

/** The members of a request that decide what it can cost; all others are for the upstream. */
const RequestBody = Schema.Struct({
  model: Schema.optionalKey(Schema.String),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  background: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  n: Limit,
  max_tokens: Limit,
  max_completion_tokens: Limit,
  max_output_tokens: Limit,
  stream_options: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({ include_usage: Schema.optionalKey(Schema.NullOr(Schema.Boolean)) })
    )
  ),
  previous_response_id: Schema.optionalKey(Schema.Unknown),
  conversation: Schema.optionalKey(Schema.Unknown),
  generationConfig: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ maxOutputTokens: Limit, candidateCount: Limit }))
  ),
  // Gemini accepts both spellings
  generation_config: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ max_output_tokens: Limit, candidate_count: Limit }))
  )
})
type RequestBody = typeof RequestBody.Type

const decodeBody = Schema.decodeUnknownResult(RequestBody, {
  errors: "all",
  reportInput: true
})
const decodeRecord = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Unknown))
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Choices that are held for at most: OpenAI, which allows the most, returns no more. */
const choicesMax = 128

/** Pictures cost tokens that the length of their URL does not show. */
const tokensPerPictureMax = 6000

/** They name what is stored in the upstream account, which all users share. ADR 0073. */
const keptUpstream = ["previous_response_id", "conversation"] as const

/**
 * Parses the body and prices the call. Fails with 2001, 2002 or 2006.
 * docs/reference/wallet.md#price-of-a-call, ADR 0073.
 */
export const planCall = (
  catalog: UpstreamCatalog,
  route: OpenRoute,
  pathModel: string | undefined,
  given: Uint8Array
): Result.Result<CallPlan, Problem> => {
  const bytes = withoutMark(given)
  const model = pathModel ?? null
  const plain = { model, body: bytes, hidesUsage: false }
  if (route.meter.per === "nothing") {
    return Result.succeed({ ...plain, metered: { _tag: "Nothing" }, hold: zero })
  }
  if (route.meter.per === "call") {
    const { amount } = route.meter
    return Result.succeed({ ...plain, metered: { _tag: "Call", amount }, hold: amount })
  }
  return planTokens(catalog, route, route.meter.protocol, pathModel, bytes)
}

/** One byte order mark is skipped, as on every route. docs/reference/http.md#request-bodies */
const withoutMark = (bytes: Uint8Array): Uint8Array =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

const planTokens = (
  catalog: UpstreamCatalog,
  route: OpenRoute,
  protocol: UsageProtocol,
  pathModel: string | undefined,
  bytes: Uint8Array
): Result.Result<CallPlan, Problem> => {
  const read = readBody(bytes)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const { body, text, value } = read.success
  const name = pathModel ?? body.model
  if (name === undefined) {
    return Result.fail(invalid([{ pointer: "#/model", detail: "Expected the name of a model" }]))
  }
  const model = catalog.priced(route.vendor, name)
  if (model === undefined) {
    return Result.fail(
      problem(2006, `The model ${name.slice(0, 100)} is not offered here: it has no price`)
    )
  }
  if (body.background === true) {
    const detail = "Answers in the background are not offered: their usage is never reported back"
    return Result.fail(invalid([{ pointer: "#/background", detail }]))
  }
  const extras = surchargesOf(value)
  if (extras.length > 0) return Result.fail(invalid(extras))
  const kept = keptUpstream.filter((member) => (body[member] ?? null) !== null)
  if (kept.length > 0) {
    const detail = "Nothing is kept upstream from call to call: send what was said before with it"
    return Result.fail(invalid(kept.map((member) => ({ pointer: `#/${member}`, detail }))))
  }
  const asksUsage = protocol === "openai-chat" && body.stream === true
  const hidesUsage = asksUsage && body.stream_options?.include_usage !== true
  const sent = hidesUsage ? withUsageAsked(text, value) : Result.succeed(bytes)
  return Result.map(sent, (sent) => ({
    metered: { _tag: "Tokens", protocol, model },
    model: name,
    hold: holdOf(model, read.success),
    body: sent,
    hidesUsage
  }))
}

const isFlag = (value: unknown): boolean =>
  value === undefined || value === null || typeof value === "boolean"
const isLimit = (value: unknown): boolean =>
  value === undefined || value === null || isPositive(value)

/**
 * Most bodies are plain and correct and need no decoder, which costs as much as the rest of a plan.
 * All others are decoded.
 */
const isPlain = (value: Partial<Record<keyof RequestBody, unknown>>): value is RequestBody =>
  (value.model === undefined || typeof value.model === "string") &&
  isFlag(value.stream) &&
  isFlag(value.background) &&
  isLimit(value.n) &&
  isLimit(value.max_tokens) &&
  isLimit(value.max_completion_tokens) &&
  isLimit(value.max_output_tokens) &&
  value.stream_options === undefined &&
  value.generationConfig === undefined &&
  value.generation_config === undefined

interface ReadBody {
  readonly bytes: Uint8Array
  readonly text: string
  readonly value: unknown
  readonly body: RequestBody
}

const duplicateKeys = problem(2002, "An object of the body has the same key twice")

const readBody = (bytes: Uint8Array): Result.Result<ReadBody, Problem> => {
  const text = Result.try({
    try: () => strictUtf8.decode(bytes),
    catch: () => problem(2002, "The body is not valid UTF-8")
  })
  if (Result.isFailure(text)) return Result.fail(text.failure)
  const json = parseJson(text.success)
  if (Result.isFailure(json)) return Result.fail(problem(2002, "The body is not valid JSON"))
  const value = json.success
  if (Array.isArray(value) || typeof value !== "object" || value === null) {
    return Result.fail(invalid([{ pointer: "#", detail: "Expected an object" }]))
  }
  // The upstream might read the other one
  if (hasDuplicateKeys(text.success, value)) return Result.fail(duplicateKeys)
  if (isPlain(value)) return Result.succeed({ bytes, text: text.success, value, body: value })
  const body = decodeBody(value)
  return Result.isFailure(body)
    ? Result.fail(invalid(faultsOf(body.failure.issue)))
    : Result.succeed({ bytes, text: text.success, value, body: body.success })
}

/** Unknown: the members that matter are decoded. */
const parseJson = (text: string): Result.Result<unknown, unknown> =>
  Result.try((): unknown => JSON.parse(text))

/** A token is at least one byte of text; what the body does not show counts with its maximum. */
const holdOf = (model: TokenModel, { body, bytes, text, value }: ReadBody): Credits => {
  const { asksLongCache, hasFile, pictures } = hiddenInputOf(text)
  const shown = bytes.length + pictures * tokensPerPictureMax
  const isHidden = hasFile || namesStoredItem(value)
  const input = isHidden ? model.inputTokensMax : Math.min(shown, model.inputTokensMax)
  const { generationConfig, generation_config } = body
  const asked = largest(
    body.max_tokens,
    body.max_completion_tokens,
    body.max_output_tokens,
    generationConfig?.maxOutputTokens,
    generation_config?.max_output_tokens
  )
  const choices =
    largest(body.n, generationConfig?.candidateCount, generation_config?.candidate_count) ?? 1
  const each = Math.min(asked ?? Infinity, model.outputTokensMax)
  const output = each * Math.min(choices, choicesMax)
  return holdTokens(model.price, input, output, asksLongCache)
}

/** The upstream may apply any of them. */
const largest = (...limits: ReadonlyArray<number | null | undefined>): number | undefined => {
  let most: number | undefined
  for (const limit of limits) {
    if (limit !== null && limit !== undefined) most = Math.max(most ?? limit, limit)
  }
  return most
}

const utf8 = new TextEncoder()

/**
 * Asks for the usage chunk of a chat stream. The client's bytes follow the new member unchanged; only a
 * body that has `stream_options` is serialized again, which fails when it is nested too deeply.
 */
const withUsageAsked = (text: string, value: unknown): Result.Result<Uint8Array, Problem> => {
  const members = Option.getOrElse(decodeRecord(value), () => ({}) as const)
  const own: unknown = Object.getOwnPropertyDescriptor(members, "stream_options")?.value
  if (own === undefined) {
    const start = text.indexOf("{") + 1
    return Result.succeed(
      utf8.encode(`{"stream_options":{"include_usage":true},${text.slice(start)}`)
    )
  }
  const options = Option.getOrElse(decodeRecord(own), () => ({}) as const)
  return Result.try({
    try: () =>
      utf8.encode(
        JSON.stringify({ ...members, stream_options: { ...options, include_usage: true } })
      ),
    catch: () => problem(2002, "The body is nested too deeply")
  })
}
