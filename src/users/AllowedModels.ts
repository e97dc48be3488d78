import { Effect } from "effect"
import type { Problem } from "../domain/Problem.ts"
import { allowsModel, modelNotAllowed } from "./ApiKeys.ts"
import type { Principal } from "./ApiKeys.ts"

/**
 * Refuses a request unless the key allows every model that it may use, because the models of an alias change with the
 * catalog. ADR 0224.
 */
export const refuseOtherModels = (
  principal: Principal,
  models: ReadonlyArray<string>
): Effect.Effect<void, Problem> => {
  const other = models.find((model) => !allowsModel(principal, [model]))
  return other === undefined ? Effect.void : Effect.fail(modelNotAllowed(other))
}
