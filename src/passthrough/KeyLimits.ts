import { Result } from "effect"
import { format } from "../domain/Credits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { allowsModel, modelNotAllowed } from "../users/ApiKeys.ts"
import type { CallPlan } from "./CallPlan.ts"
import type { PassthroughCall } from "./PassthroughCall.ts"

/**
 * Refuses a call before its hold: for a model that its key does not allow (1004), or for a hold above what the
 * request allows (1103). docs/reference/keys-and-limits.md#limits-of-a-key
 */
export const withinLimits = (
  call: PassthroughCall,
  plan: Result.Result<CallPlan, Problem>
): Result.Result<CallPlan, Problem> => {
  const refusal = Result.isSuccess(plan) ? refusalOf(call, plan.success) : undefined
  return refusal === undefined ? plan : Result.fail(refusal)
}

const refusalOf = ({ maxCost, principal }: PassthroughCall, plan: CallPlan) => {
  if (principal.limits !== undefined) {
    const other = modelsOf(plan).find((names) => !allowsModel(principal, names))
    if (other !== undefined) return modelNotAllowed(other[0] ?? "")
  }
  return maxCost !== undefined && plan.hold > maxCost
    ? problem(1103, `This call can cost up to ${format(plan.hold)} credits`)
    : undefined
}

/** Each model that the call may use, under its names: as the client wrote it, and as it is priced. */
const modelsOf = ({ metered, model }: CallPlan): ReadonlyArray<ReadonlyArray<string>> => {
  const named = model === null ? [] : [model]
  if (metered._tag !== "Tokens") return named.length === 0 ? [] : [named]
  return [[...named, metered.model.model], ...metered.fallbacks.map(({ model }) => [model.model])]
}
