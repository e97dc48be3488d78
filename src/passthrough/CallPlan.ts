import { Array as Arr, Option, Result, Schema } from "effect"
import { nameOf } from "../catalog/Alias.ts"
import { inOrderOf } from "../catalog/AliasTargets.ts"
import type { CallAlias } from "../catalog/AliasTargets.ts"
import { capFaults } from "../catalog/FieldFaults.ts"
import type { ModelPrice } from "../catalog/ModelPrice.ts"
import { takesResponse } from "../catalog/OpenRoutes.ts"
import type { OpenRoute, TokenModel, UsageProtocol } from "../catalog/OpenRoutes.ts"
import { dialectOf } from "../catalog/OtherRoute.ts"
import type { TokenPrice } from "../catalog/Price.ts"
import { endingOf } from "../catalog/PriceRow.ts"
import type { Ending } from "../catalog/PriceRow.ts"
import type { ToolUses } from "../catalog/ToolUses.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { formatExact, zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { at } from "../domain/json/Json.ts"
import { withFirstMember, withMember, withoutMember } from "../domain/json/JsonBytes.ts"
import { isMark, withoutMark } from "../domain/json/JsonDocument.ts"
import { invalid, problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import type { Provider, UsageDifferences } from "../domain/Provider.ts"
import type { SkipReason } from "../domain/task/Candidate.ts"
import { allowsModel, modelNotAllowed } from "../users/ApiKeys.ts"
import { callElsewhere, modelElsewhere, noRouteOf } from "./CallElsewhere.ts"
import { rerankOf, speechOf } from "./counted/CountedCall.ts"
import type { CountedCall } from "./counted/CountedCall.ts"
import { planUpload } from "./counted/UploadPlan.ts"
import { fallbackModels } from "./FallbackModels.ts"
import type { FallbackModel } from "./FallbackModels.ts"
import { hiddenInputOf, pictureTokensOf } from "./HiddenInput.ts"
import type { HiddenInput } from "./HiddenInput.ts"
import { countRefusal, namesStoredItem, storedRefusal } from "./KeptState.ts"
import type { PassthroughCall } from "./PassthroughCall.ts"
import { mayReason } from "./Reasoning.ts"
import { holdOf, slicesOf } from "./slices/OutputSlices.ts"
import type { CostBound, OutputSlices } from "./slices/OutputSlices.ts"
import { soldModel } from "./SoldModel.ts"
import { readBody } from "./streams/MeteredBody.ts"
import type { ReadBody } from "./streams/MeteredBody.ts"
import { concealedUsageOf, readsToolResults, surchargesOf, toolUsesMaxOf } from "./Surcharges.ts"

/** A model that may serve a call, with the request to send and its target. */
export interface CallCandidate {
  readonly call: PassthroughCall
  readonly plan: CallPlan
}

export interface SkippedModel {
  readonly vendor: string
  readonly model: string
  readonly reason: SkipReason
}

/**
 * The models that may serve a call, in the order in which they are tried: the model that it names, or those of the
 * alias that it names.
 */
export interface CallCandidates {
  readonly alias: CallAlias | undefined
  readonly candidates: readonly [CallCandidate, ...ReadonlyArray<CallCandidate>]
  /** Models of the alias that are not used. */
  readonly skipped: ReadonlyArray<SkippedModel>
  /** The amount held before any of them is called. */
  readonly opening: Credits
}

/**
 * Plans a call and checks the limits of its key and its client. Fails with 2001, 2002, 2006, 1004 or 1103. Looks up
 * models before aliases, so that aliases add no cost to calls that name a model.
 */
export const candidatesOf = (
  call: PassthroughCall,
  id: string,
  nowMillis: number,
  isSandbox: (provider: Provider) => boolean
): Result.Result<CallCandidates, Problem> => {
  const planned = planOf(call, nowMillis)
  if (Result.isSuccess(planned)) {
    const plan = planned.success
    return Result.succeed({
      alias: undefined,
      candidates: [{ call, plan }],
      skipped: none,
      opening: openingOf(plan)
    })
  }
  const name = nameIn(call)
  if (name === undefined) return Result.fail(planned.failure)
  const model = modelElsewhere(call, name)
  if (model !== undefined) return candidatesElsewhere(call, model, nowMillis)
  const alias = call.to.catalog.aliasOf(call.to.route.vendor, name)
  return alias === undefined
    ? Result.fail(planned.failure)
    : candidatesOfAlias(call, alias, id, nowMillis, isSandbox)
}

const none: ReadonlyArray<SkippedModel> = []

/** The amount held before the call: its maximum cost or, for a stream whose output is visible, its first slice. */
const openingOf = ({ hold, slices }: CallPlan): Credits => slices?.first ?? hold

/** The model of a candidate: an alias names models of several vendors. */
export const modelOf = ({ call, plan }: CallCandidate) => ({
  vendor: call.to.route.vendor,
  model: plan.model ?? ""
})

/** The name in a call whose vendor has no model of this name. */
const nameIn = ({ body, to: { model, route }, upload }: PassthroughCall): string | undefined => {
  // A form is sent unchanged to the vendor of its path
  if (upload !== undefined) return undefined
  if (route.meter.per !== "tokens" || model !== undefined) return model
  const read = readBody(withoutMark(body))
  return Result.isSuccess(read) ? read.success.body.model : undefined
}

export const backgroundRule =
  "Only OpenAI's responses can run in the background, and only by the model's own name"

/** docs/reference/passthrough.md#models-of-other-vendors */
const candidatesElsewhere = (
  call: PassthroughCall,
  model: TokenModel,
  nowMillis: number
): Result.Result<CallCandidates, Problem> =>
  Result.flatMap(readBody(withoutMark(call.body)), (read) => {
    const own = callElsewhere(call, read, model)
    if (own === undefined) {
      const { catalog } = call.to
      const instead = dialectOf(catalog.routes, model, model.model)
      return Result.fail(instead === undefined ? noRouteOf(model, call) : problem(2006, instead))
    }
    return Result.map(planOf(own, nowMillis), (plan) => ({
      alias: undefined,
      candidates: [{ call: own, plan }] as const,
      skipped: none,
      opening: openingOf(plan)
    }))
  })

const candidateOf = (
  call: PassthroughCall,
  read: ReadBody,
  model: TokenModel,
  nowMillis: number
): Result.Result<CallCandidate, Problem> | undefined => {
  const elsewhere = callElsewhere(call, read, model)
  if (elsewhere === undefined) return undefined
  // The client's maximum is compared with the hold of the whole alias instead
  const own = { ...elsewhere, maxCost: undefined }
  return Result.map(planOf(own, nowMillis), (plan) => ({ call: own, plan }))
}

/**
 * Plans a call for each model of the alias that it names. Fails with 1004 if its key does not allow one of them, with
 * 1103 if the call may cost more than the client's maximum, and with the fault of the first model if no model accepts
 * the call. docs/reference/aliases.md#calls, ADR 0224.
 */
const candidatesOfAlias = (
  call: PassthroughCall,
  alias: CallAlias,
  id: string,
  nowMillis: number,
  isSandbox: (provider: Provider) => boolean
): Result.Result<CallCandidates, Problem> => {
  const other = alias.targets.find(({ model }) => !allowsModel(call.principal, [model.model]))
  if (other !== undefined) return Result.fail(modelNotAllowed(other.model.model))
  const read = readBody(withoutMark(call.body))
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const skipped: Array<SkippedModel> = []
  const skip = ({ model, vendor }: Omit<SkippedModel, "reason">, reason: SkipReason) => {
    skipped.push({ vendor, model, reason })
  }
  const planned: Array<CallCandidate> = []
  let failure: Problem | undefined
  for (const model of inOrderOf(alias.targets, id)) {
    const made = candidateOf(call, read.success, model, nowMillis)
    if (made === undefined) skip(model, "no_route")
    else if (Result.isSuccess(made)) planned.push(made.success)
    else {
      failure ??= made.failure
      skip(model, made.failure.code === 2006 ? "not_sold" : "body")
    }
  }
  const ofSimulator = ({ call: { to } }: CallCandidate) => isSandbox(to.route.provider)
  // Simulated models are never offered together with a vendor's
  const isMixed = planned.some(ofSimulator) && !planned.every(ofSimulator)
  const [first, ...rest] = isMixed ? planned.filter((it) => !ofSimulator(it)) : planned
  if (isMixed) for (const it of planned.filter(ofSimulator)) skip(modelOf(it), "sandbox")
  if (first === undefined) return Result.fail(failure ?? noModelOffered(alias))
  const candidates = [first, ...rest] as const
  const tooMuch = overMaxCost(
    call,
    mostOf(candidates, ({ hold }) => hold)
  )
  if (tooMuch !== undefined) return Result.fail(tooMuch)
  return Result.succeed({ alias, candidates, skipped, opening: mostOf(candidates, openingOf) })
}

const mostOf = (
  candidates: ReadonlyArray<CallCandidate>,
  amountOf: (plan: CallPlan) => Credits
): Credits =>
  candidates.reduce<Credits>((most, { plan }) => {
    const amount = amountOf(plan)
    return amount > most ? amount : most
  }, zero)

const noModelOffered = ({ alias, vendor }: CallAlias): Problem =>
  problem(2006, `No model of ${nameOf({ vendor, model: alias })} is offered at this route`)

/**
 * Plans a call for its own model. Refuses it before the hold if its key does not allow the model (1004) or if the
 * hold exceeds the request's maximum (1103). docs/reference/keys-and-limits.md#limits-of-a-key
 */
export const planOf = (
  call: PassthroughCall,
  nowMillis: number
): Result.Result<CallPlan, Problem> => {
  const { catalog, model, route } = call.to
  const plan = planCall(catalog, route, model, call.body, nowMillis, call)
  const refusal = Result.isSuccess(plan) ? refusalOf(call, plan.success) : undefined
  return refusal === undefined ? plan : Result.fail(refusal)
}

const refusalOf = (call: PassthroughCall, plan: CallPlan): Problem | undefined => {
  if (call.principal.limits !== undefined) {
    const other = modelsOf(call, plan).find((names) => !allowsModel(call.principal, names))
    if (other !== undefined) return modelNotAllowed(other[0] ?? "")
  }
  return overMaxCost(call, plan.hold)
}

/** 1103 for a hold above the client's maximum. */
const overMaxCost = (
  { maxCost }: Pick<PassthroughCall, "maxCost">,
  hold: Credits
): Problem | undefined =>
  maxCost !== undefined && hold > maxCost
    ? problem(1103, `This call can cost up to ${formatExact(hold)} credits`)
    : undefined

/** The names of each model that the call may use: as the client wrote it, and as it is priced. */
const modelsOf = (
  { to: { catalog, route } }: PassthroughCall,
  { metered, model }: CallPlan
): ReadonlyArray<ReadonlyArray<string>> => {
  const named = model === null ? [] : [model]
  if (metered._tag === "Tokens") {
    return [[...named, metered.model.model], ...metered.fallbacks.map((it) => [it.model.model])]
  }
  const alias = model === null ? undefined : catalog.aliasOf(route.vendor, model)
  if (alias !== undefined) return alias.targets.map((it) => [it.model.model])
  return named.map((name) => [name, catalog.priced(route.vendor, name)?.model ?? name])
}

/** How a call's hold is computed and its response metered. */
export type Metered =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Call"; readonly amount: Credits }
  | MeteredTokens

/** A call is charged at the prices that apply when it begins. */
export interface MeteredTokens {
  readonly _tag: "Tokens"
  readonly protocol: UsageProtocol
  /** The requested model. */
  readonly model: TokenModel
  /** How its vendor's figures differ from those of the protocol. */
  readonly usage: UsageDifferences | undefined
  /** Whether it may spend tokens or use tools that a stream shows only in its usage figures. */
  readonly mayReason: boolean
  readonly price: ModelPrice
  /** For a model that is not a language model: what the gateway counts. */
  readonly counted?: CountedCall
  /** The model name of a form, if it came after the file. */
  readonly named?: string | undefined
  /** Models that may respond instead of the requested one. */
  readonly fallbacks: ReadonlyArray<FallbackModel>
  /** Provides the price if another model responds. */
  readonly catalog: UpstreamCatalog
  readonly nowMillis: number
}

/** A parsed and priced call: the request to send upstream, and its maximum cost. */
export interface CallPlan {
  readonly metered: Metered
  /** Set for a model that its vendor is ending. */
  readonly ending: Ending | undefined
  /** The model that the client named. */
  readonly model: string | null
  /** The most that it can cost. */
  readonly hold: Credits
  /** Present for a stream whose hold grows with its output. */
  readonly slices?: OutputSlices | undefined
  /**
   * The bytes to send: the client's bytes and, for a chat stream, the request for usage figures. Dropped when the
   * response begins.
   */
  body: Uint8Array
  /** Whether to remove the usage chunk from the stream, because the client did not ask for it. */
  readonly hidesUsage: boolean
}

const decodeRecord = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Unknown))

/** The most choices for which a call is held: the maximum of OpenAI, which allows the most. */
const choicesMax = 128

/**
 * Parses the body and prices the call. Fails with 2001, 2002 or 2006.
 * docs/reference/wallet.md#price-of-a-call, ADR 0073.
 */
export const planCall = (
  catalog: UpstreamCatalog,
  route: OpenRoute,
  pathModel: string | undefined,
  given: Uint8Array,
  nowMillis: number,
  kept: CallState = {}
): Result.Result<CallPlan, Problem> => {
  const bytes = withoutMark(given)
  const model = pathModel ?? null
  const plain = { model, ending: undefined, body: bytes, hidesUsage: false }
  if (route.meter.per === "nothing") {
    const refusal = takesResponse(route) ? countRefusal(bytes, kept.previous) : undefined
    if (refusal !== undefined) return Result.fail(refusal)
    return Result.succeed({ ...plain, metered: { _tag: "Nothing" }, hold: zero })
  }
  if (route.meter.per === "call") {
    const { amount } = route.meter
    return Result.succeed({ ...plain, metered: { _tag: "Call", amount }, hold: amount })
  }
  const { protocol } = route.meter
  if (kept.upload !== undefined) {
    const at = { catalog, route, protocol, nowMillis }
    return planUpload(at, kept.upload, kept.principal)
  }
  return planTokens({ catalog, route, protocol, pathModel, bytes, nowMillis, kept })
}

/**
 * Context of a call: the stored responses that it may refer to, the query of its path, whether it is a request of a
 * batch, and the form that it sends.
 */
export type CallState = Partial<
  Pick<PassthroughCall, "previous" | "mayWait" | "query" | "upload" | "principal">
> & {
  readonly inBatch?: boolean
}

interface MeteredRequest {
  readonly kept: CallState
  readonly catalog: UpstreamCatalog
  readonly route: OpenRoute
  readonly protocol: UsageProtocol
  readonly pathModel: string | undefined
  readonly bytes: Uint8Array
  readonly nowMillis: number
}

const planTokens = ({
  bytes,
  catalog,
  kept: { inBatch = false, mayWait, previous, query },
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
  const sold = soldModel({ catalog, route, protocol, nowMillis, inBatch }, name)
  if (Result.isFailure(sold)) return Result.fail(sold.failure)
  const { model, price } = sold.success
  if (price.per !== "million_tokens" || model.kind !== undefined) {
    return planCounted({ catalog, protocol, nowMillis }, read.success, model, price, name)
  }
  if (body.background === true && mayWait !== true) {
    return Result.fail(invalid([{ pointer: "#/background", detail: backgroundRule }]))
  }
  const isGoogle = protocol === "gemini-generate" || protocol === "gemini-embeddings"
  const concealed = isGoogle ? concealedUsageOf(query ?? "") : []
  const extras = [...surchargesOf(value, price), ...concealed]
  if (Arr.isReadonlyArrayNonEmpty(extras)) return Result.fail(invalid(capFaults(extras)))
  const stored = storedRefusal(body, previous)
  if (stored !== undefined) return Result.fail(stored)
  if (inBatch && (at(value, "fallbacks") ?? null) !== null) {
    const detail = "A request of a batch cannot name fallback models"
    return Result.fail(invalid([{ pointer: "#/fallbacks", detail }]))
  }
  const fallbacks = fallbackModels(catalog, route.vendor, value, nowMillis)
  if (Result.isFailure(fallbacks)) return Result.fail(fallbacks.failure)
  const usage = catalog.provider(route.provider)?.usage
  const isChatStream = protocol === "openai-chat" && body.stream === true
  const asksUsage = isChatStream && usage?.inStreams !== "unasked"
  const hidesUsage = asksUsage && body.stream_options?.include_usage !== true
  const plain = isChatStream && !asksUsage ? withoutMember(bytes, "stream_options") : bytes
  const sent = hidesUsage ? withUsageAsked(bytes, value) : plain
  const input = inputOf(read.success, previous !== undefined)
  const bounds = [
    boundOf(model, price, body, input),
    ...fallbacks.success.map(({ maxTokens, model, price }) =>
      boundOf(model, price, body, input, maxTokens)
    )
  ]
  const reasons =
    input.tools !== undefined ||
    input.compacts ||
    (usage?.reasoning !== "shown" &&
      mayReason(protocol, [model, ...fallbacks.success.map((other) => other.model)], value))
  const isVisible = !reasons && !hidesOutput(value) && isStream(protocol, route, body, query)
  return Result.succeed({
    metered: {
      _tag: "Tokens",
      protocol,
      model,
      usage,
      mayReason: reasons,
      price,
      fallbacks: fallbacks.success,
      catalog,
      nowMillis
    },
    ending: endingOf(model),
    model: name,
    hold: holdOf(bounds),
    slices: isVisible ? slicesOf(bounds) : undefined,
    body: sent,
    hidesUsage
  })
}

/**
 * Plans a call to a speech, transcription or rerank model. Such calls have neither tools nor choices, and the vendor
 * stores nothing for them.
 */
const planCounted = (
  { catalog, nowMillis, protocol }: Pick<MeteredRequest, "catalog" | "protocol" | "nowMillis">,
  read: ReadBody,
  model: TokenModel,
  price: ModelPrice,
  name: string
): Result.Result<CallPlan, Problem> => {
  const plan = protocol === "rerank" ? rerankOf : speechOf
  return Result.map(plan(read, model, price), (counted) => ({
    metered: {
      _tag: "Tokens",
      protocol,
      model,
      usage: undefined,
      // In an event stream, the figures come at the end
      mayReason: !counted.isSound,
      price,
      counted,
      fallbacks: [],
      catalog,
      nowMillis
    },
    ending: endingOf(model),
    model: name,
    hold: counted.hold,
    body: read.bytes,
    hidesUsage: false
  }))
}

interface CallInput extends HiddenInput {
  /** Of everything except pictures, whose tokens depend on the model. */
  readonly tokensMax: number
  readonly tools: ToolUses | undefined
}

/**
 * The maximum of input tokens. A token is at least one byte of text; input that the body does not show has no maximum.
 * Searches the whole body, so it is called once per call, even for several models.
 */
const inputOf = ({ bytes, value }: ReadBody, continues: boolean): CallInput => {
  const hidden = hiddenInputOf(value)
  const isHidden = continues || hidden.hasFile || namesStoredItem(value) || readsToolResults(value)
  const tokensMax = isHidden ? Infinity : bytes.length
  return { ...hidden, tokensMax, tools: toolUsesMaxOf(value) }
}

const boundOf = (
  model: TokenModel,
  price: TokenPrice,
  body: ReadBody["body"],
  input: CallInput,
  ownLimit?: number
): CostBound => {
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
  // A compaction reads the whole context and writes a summary, in addition to the response
  const times = input.compacts ? 2 : 1
  const tokensMax = input.tokensMax + pictureTokensOf(model, input)
  return {
    price,
    inputTokens: times * Math.min(tokensMax, model.inputTokensMax),
    outputTokens: times * each * Math.min(choices, choicesMax),
    keepsLong: input.asksLongCache,
    tools: input.tools
  }
}

/** Whether the response is relayed as a stream of events. */
const isStream = (
  protocol: UsageProtocol,
  { path }: OpenRoute,
  { stream }: ReadBody["body"],
  query = ""
): boolean =>
  protocol === "gemini-generate"
    ? path.endsWith(":streamGenerateContent") && /[?&]alt=sse(?:&|$)/u.test(query)
    : stream === true

/** Rejected prediction tokens cost as much as output, and the stream does not show them. */
const hidesOutput = (body: unknown): boolean => (at(body, "prediction") ?? null) !== null

/** The largest of the limits, because the upstream may apply any of them. */
const largest = (...limits: ReadonlyArray<number | null | undefined>): number | undefined => {
  let most: number | undefined
  for (const limit of limits) {
    if (limit !== null && limit !== undefined) most = Math.max(most ?? limit, limit)
  }
  return most
}

/** Adds the request for the usage chunk of a chat stream. All other bytes stay as the client sent them. */
const withUsageAsked = (bytes: Uint8Array, value: unknown): Uint8Array => {
  const members = Option.getOrElse(decodeRecord(value), () => ({}) as const)
  const own: unknown = Object.getOwnPropertyDescriptor(members, "stream_options")?.value
  if (own === undefined) return withFirstMember(bytes, "stream_options", { include_usage: true })
  const options = Option.getOrElse(decodeRecord(own), () => ({}) as const)
  return withMember(bytes, "stream_options", { ...options, include_usage: true })
}
