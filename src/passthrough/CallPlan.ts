import { Array as Arr, Option, Result, Schema } from "effect"
import { capFaults } from "../catalog/FieldFaults.ts"
import type { OpenRoute, TokenModel, UsageProtocol } from "../catalog/OpenRoutes.ts"
import { holdTokens } from "../catalog/Price.ts"
import type { TokenPrice } from "../catalog/Price.ts"
import { endingOf, priceAt } from "../catalog/PriceRow.ts"
import type { Ending } from "../catalog/PriceRow.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { withFirstMember, withMember } from "../domain/JsonBytes.ts"
import { isMark, withoutMark } from "../domain/JsonDocument.ts"
import { invalid, problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { fallbackModels } from "./FallbackModels.ts"
import type { FallbackModel } from "./FallbackModels.ts"
import { hiddenInputOf } from "./HiddenInput.ts"
import { namesStoredItem } from "./KeptState.ts"
import { readBody } from "./MeteredBody.ts"
import type { ReadBody } from "./MeteredBody.ts"
import { mayReason } from "./Reasoning.ts"
import { readsToolResults, surchargesOf } from "./Surcharges.ts"

/** What is held for a call, and how its response is metered. */
export type Metered =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Call"; readonly amount: Credits }
  | MeteredTokens

/** A call is charged at the prices of its beginning. */
export interface MeteredTokens {
  readonly _tag: "Tokens"
  readonly protocol: UsageProtocol
  /** The requested model. */
  readonly model: TokenModel
  /** It may spend tokens that a stream shows only in its usage figures. */
  readonly mayReason: boolean
  readonly price: TokenPrice
  /** Models that the request allows in place of its own. */
  readonly fallbacks: ReadonlyArray<FallbackModel>
  /** For the price of another model that responds. */
  readonly catalog: UpstreamCatalog
  readonly nowMillis: number
}

/** A parsed and priced call: what goes upstream, and the most that it can cost. */
export interface CallPlan {
  readonly metered: Metered
  /** Of a model that its vendor ends. */
  readonly ending: Ending | undefined
  /** The model that the client named. */
  readonly model: string | null
  readonly hold: Credits
  /**
   * What goes upstream: the client's bytes; in a chat stream also the request for usage figures. Dropped when the
   * response begins.
   */
  body: Uint8Array
  /** The client did not ask for the usage chunk: it is removed from the stream. */
  readonly hidesUsage: boolean
}

const decodeRecord = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Unknown))

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
  given: Uint8Array,
  nowMillis: number
): Result.Result<CallPlan, Problem> => {
  const bytes = withoutMark(given)
  const model = pathModel ?? null
  const plain = { model, ending: undefined, body: bytes, hidesUsage: false }
  if (route.meter.per === "nothing") {
    return Result.succeed({ ...plain, metered: { _tag: "Nothing" }, hold: zero })
  }
  if (route.meter.per === "call") {
    const { amount } = route.meter
    return Result.succeed({ ...plain, metered: { _tag: "Call", amount }, hold: amount })
  }
  return planTokens({ catalog, route, protocol: route.meter.protocol, pathModel, bytes, nowMillis })
}

interface MeteredRequest {
  readonly catalog: UpstreamCatalog
  readonly route: OpenRoute
  readonly protocol: UsageProtocol
  readonly pathModel: string | undefined
  readonly bytes: Uint8Array
  readonly nowMillis: number
}

/** What has no price, or none now, is never sold. */
const soldModel = (
  catalog: UpstreamCatalog,
  vendor: string,
  name: string,
  nowMillis: number
): Result.Result<{ readonly model: TokenModel; readonly price: TokenPrice }, Problem> => {
  const model = catalog.priced(vendor, name)
  const price = model && priceAt(model, nowMillis)
  if (model !== undefined && price !== undefined) return Result.succeed({ model, price })
  const because =
    model === undefined
      ? (catalog.unsold(vendor, name) ?? "it has no price")
      : "it has no price on this day"
  return Result.fail(
    problem(2006, `The model ${name.slice(0, 100)} is not offered here: ${because}`)
  )
}

const planTokens = ({
  bytes,
  catalog,
  nowMillis,
  pathModel,
  protocol,
  route
}: MeteredRequest): Result.Result<CallPlan, Problem> => {
  const read = readBody(bytes)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const { body, value } = read.success
  const name = pathModel ?? body.model
  if (name === undefined || isMark(name)) {
    return Result.fail(invalid([{ pointer: "#/model", detail: "Expected the name of a model" }]))
  }
  const sold = soldModel(catalog, route.vendor, name, nowMillis)
  if (Result.isFailure(sold)) return Result.fail(sold.failure)
  const { model, price } = sold.success
  if (body.background === true) {
    const detail = "Answers in the background are not offered: their usage is never reported back"
    return Result.fail(invalid([{ pointer: "#/background", detail }]))
  }
  const extras = surchargesOf(value)
  if (Arr.isReadonlyArrayNonEmpty(extras)) return Result.fail(invalid(capFaults(extras)))
  const kept = keptUpstream.filter((member) => (body[member] ?? null) !== null)
  if (kept.length > 0) {
    const detail = "Nothing is kept upstream from call to call: send what was said before with it"
    return Result.fail(invalid(kept.map((member) => ({ pointer: `#/${member}`, detail }))))
  }
  const fallbacks = fallbackModels(catalog, route.vendor, value, nowMillis)
  if (Result.isFailure(fallbacks)) return Result.fail(fallbacks.failure)
  const asksUsage = protocol === "openai-chat" && body.stream === true
  const hidesUsage = asksUsage && body.stream_options?.include_usage !== true
  const sent = hidesUsage ? withUsageAsked(bytes, value) : bytes
  const input = inputOf(read.success)
  let hold = holdOf(model, price, body, input)
  for (const { maxTokens, model, price } of fallbacks.success) {
    const other = holdOf(model, price, body, input, maxTokens)
    if (other > hold) hold = other
  }
  return Result.succeed({
    metered: {
      _tag: "Tokens",
      protocol,
      model,
      mayReason: mayReason(
        protocol,
        [model, ...fallbacks.success.map((other) => other.model)],
        value
      ),
      price,
      fallbacks: fallbacks.success,
      catalog,
      nowMillis
    },
    ending: endingOf(model),
    model: name,
    hold,
    body: sent,
    hidesUsage
  })
}

interface CallInput {
  readonly tokensMax: number
  readonly asksLongCache: boolean
}

/**
 * A token is at least one byte of text; what the body does not show has no maximum. Searches the whole
 * body, so it is called once, however many models the body names.
 */
const inputOf = ({ bytes, value }: ReadBody): CallInput => {
  const { asksLongCache, hasFile, pictures } = hiddenInputOf(value)
  const isHidden = hasFile || namesStoredItem(value) || readsToolResults(value)
  const tokensMax = isHidden ? Infinity : bytes.length + pictures * tokensPerPictureMax
  return { tokensMax, asksLongCache }
}

const holdOf = (
  model: TokenModel,
  price: TokenPrice,
  body: ReadBody["body"],
  { asksLongCache, tokensMax }: CallInput,
  ownLimit?: number
): Credits => {
  const { generationConfig, generation_config } = body
  const asked = largest(
    ownLimit,
    body.max_tokens,
    body.max_completion_tokens,
    body.max_output_tokens,
    generationConfig?.maxOutputTokens,
    generationConfig?.max_output_tokens,
    generation_config?.maxOutputTokens,
    generation_config?.max_output_tokens
  )
  const choices =
    largest(
      body.n,
      generationConfig?.candidateCount,
      generationConfig?.candidate_count,
      generation_config?.candidateCount,
      generation_config?.candidate_count
    ) ?? 1
  const each = Math.min(asked ?? Infinity, model.outputTokensMax)
  const output = each * Math.min(choices, choicesMax)
  return holdTokens(price, Math.min(tokensMax, model.inputTokensMax), output, asksLongCache)
}

/** The upstream may apply any of them. */
const largest = (...limits: ReadonlyArray<number | null | undefined>): number | undefined => {
  let most: number | undefined
  for (const limit of limits) {
    if (limit !== null && limit !== undefined) most = Math.max(most ?? limit, limit)
  }
  return most
}

/** Asks for the usage chunk of a chat stream. All other bytes are the client's. */
const withUsageAsked = (bytes: Uint8Array, value: unknown): Uint8Array => {
  const members = Option.getOrElse(decodeRecord(value), () => ({}) as const)
  const own: unknown = Object.getOwnPropertyDescriptor(members, "stream_options")?.value
  if (own === undefined) return withFirstMember(bytes, "stream_options", { include_usage: true })
  const options = Option.getOrElse(decodeRecord(own), () => ({}) as const)
  return withMember(bytes, "stream_options", { ...options, include_usage: true })
}
