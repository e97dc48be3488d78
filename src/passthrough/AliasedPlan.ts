import { Result } from "effect"
import { nameOf } from "../catalog/Alias.ts"
import { inOrderOf, routeOf } from "../catalog/AliasTargets.ts"
import type { CallAlias } from "../catalog/AliasTargets.ts"
import type { TokenModel } from "../catalog/OpenRoutes.ts"
import type { SkipReason } from "../domain/Candidate.ts"
import type { Credits } from "../domain/Credits.ts"
import { withMember } from "../domain/JsonBytes.ts"
import { withoutMark } from "../domain/JsonDocument.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import type { Provider } from "../domain/Provider.ts"
import { allowsModel, modelNotAllowed } from "../users/ApiKeys.ts"
import { planCall } from "./CallPlan.ts"
import type { CallPlan } from "./CallPlan.ts"
import { withinLimits } from "./KeyLimits.ts"
import { readBody } from "./MeteredBody.ts"
import type { ReadBody } from "./MeteredBody.ts"
import type { OpenPath, PassthroughCall } from "./PassthroughCall.ts"

/** A model of an alias that may do a call: what would be sent for it, and where. */
export interface CallCandidate {
  readonly model: TokenModel
  readonly call: PassthroughCall
  readonly plan: CallPlan
}

export interface SkippedModel {
  readonly vendor: string
  readonly model: string
  readonly reason: SkipReason
}

/** The models of an alias in the order in which they are tried, and those that take no part. */
export interface AliasedPlan {
  readonly alias: CallAlias
  readonly candidates: readonly [CallCandidate, ...Array<CallCandidate>]
  readonly skipped: ReadonlyArray<SkippedModel>
  /** The most that any of them can cost. */
  readonly hold: Credits
}

/** The alias that a call names, if it names one. Costs calls of models nothing: they have a price. */
export const aliasNamed = ({ body, to }: PassthroughCall): CallAlias | undefined => {
  const { catalog, model, route } = to
  if (catalog.aliases.length === 0 || route.meter.per !== "tokens") return undefined
  if (model !== undefined) return catalog.aliasOf(route.vendor, model)
  const read = readBody(withoutMark(body))
  const name = Result.isSuccess(read) ? read.success.body.model : undefined
  return name === undefined ? undefined : catalog.aliasOf(route.vendor, name)
}

/** The body with another `model`, where it has one; all else as the client wrote it. */
const bodyFor = ({ body, bytes }: ReadBody, model: string): Uint8Array =>
  body.model === undefined ? bytes : withMember(bytes, "model", model)

const candidateOf = (
  call: PassthroughCall,
  read: ReadBody,
  model: TokenModel,
  nowMillis: number
): Result.Result<CallCandidate, Problem> | undefined => {
  const { catalog, model: inPath, route: asked } = call.to
  const route = routeOf(catalog.routes, asked, model)
  if (route._tag === "None") return undefined
  const to: OpenPath = {
    ...call.to,
    route: route.value,
    path: route.value.path.replace("{model}", model.model),
    model: inPath === undefined ? undefined : model.model
  }
  const own = { ...call, to, body: bodyFor(read, model.model), maxCost: undefined }
  const plan = planCall(catalog, route.value, to.model, own.body, nowMillis)
  return Result.map(withinLimits(own, plan), (plan) => ({ model, call: own, plan }))
}

/**
 * Plans a call by each model of the alias that it names. Fails when its key does not allow one of them (1004),
 * when it may cost more than it allows (1103), and when no model takes it, as the first one's fault says.
 * docs/reference/aliases.md#calls, ADR 0224.
 */
export const planAliased = (
  call: PassthroughCall,
  alias: CallAlias,
  id: string,
  nowMillis: number,
  isSandbox: (provider: Provider) => boolean
): Result.Result<AliasedPlan, Problem> => {
  const other = alias.targets.find(({ model }) => !allowsModel(call.principal, [model.model]))
  if (other !== undefined) return Result.fail(modelNotAllowed(other.model.model))
  const read = readBody(withoutMark(call.body))
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const skipped: Array<SkippedModel> = []
  const skip = ({ model, vendor }: TokenModel, reason: SkipReason) => {
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
  // What the simulator makes is never sold beside what a vendor makes
  const isMixed = planned.some(ofSimulator) && !planned.every(ofSimulator)
  const [first, ...rest] = isMixed ? planned.filter((it) => !ofSimulator(it)) : planned
  if (isMixed) for (const it of planned.filter(ofSimulator)) skip(it.model, "sandbox")
  if (first === undefined) return Result.fail(failure ?? notOffered(alias))
  const hold = rest.reduce(
    (most, { plan }) => (plan.hold > most ? plan.hold : most),
    first.plan.hold
  )
  return Result.succeed({ alias, candidates: [first, ...rest], skipped, hold })
}

const notOffered = ({ alias, vendor }: CallAlias): Problem =>
  problem(2006, `No model of ${nameOf({ vendor, model: alias })} is offered at this route`)
