import { Array as Arr, Result } from "effect"
import { capFaults } from "../catalog/FieldFaults.ts"
import type { TokenModel } from "../catalog/OpenRoutes.ts"
import type { TokenPrice } from "../catalog/Price.ts"
import { priceAt } from "../catalog/PriceRow.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { at } from "../domain/json/Json.ts"
import { invalid } from "../domain/Problem.ts"
import type { FieldFault, Problem } from "../domain/Problem.ts"
import { isPositive } from "./streams/MeteredBody.ts"
import { surchargesOf } from "./Surcharges.ts"

/** A model to which Anthropic falls back if the requested one refuses. */
export interface FallbackModel {
  readonly model: TokenModel
  readonly price: TokenPrice
  /** Its own limit of output tokens. */
  readonly maxTokens: number | undefined
}

const none: Result.Result<ReadonlyArray<FallbackModel>, Problem> = Result.succeed([])

/**
 * The models of `fallbacks`; the hold of a call covers each of them. Fails with 2001 if one is unnamed, has no price
 * or would cost more than its price. docs/reference/wallet.md#the-model-that-responded, ADR 0130.
 */
export const fallbackModels = (
  catalog: UpstreamCatalog,
  vendor: string,
  body: unknown,
  nowMillis: number
): Result.Result<ReadonlyArray<FallbackModel>, Problem> => {
  const entries = at(body, "fallbacks") ?? null
  if (entries === null) return none
  if (!Array.isArray(entries)) {
    const detail = "Expected a list of models, because the vendor's own choice is unknown here"
    return Result.fail(invalid([{ pointer: "#/fallbacks", detail }]))
  }
  const models: Array<FallbackModel> = []
  const faults: Array<FieldFault> = []
  for (const [index, entry] of entries.entries()) {
    const pointer = `#/fallbacks/${index}`
    const name = at(entry, "model")
    const model = typeof name === "string" ? catalog.priced(vendor, name) : undefined
    const price = model && priceAt(model, nowMillis)
    const limit = at(entry, "max_tokens") ?? undefined
    if (model === undefined || price?.per !== "million_tokens") {
      faults.push({ pointer: `${pointer}/model`, detail: "This model is not offered here" })
    } else if (limit !== undefined && !isPositive(limit)) {
      faults.push({ pointer: `${pointer}/max_tokens`, detail: "Expected a whole number from 1" })
    } else models.push({ model, price, maxTokens: limit })
    for (const fault of price?.per === "million_tokens" ? surchargesOf(entry, price) : []) {
      faults.push({ ...fault, pointer: `${pointer}${fault.pointer.slice(1)}` })
    }
  }
  return Arr.isReadonlyArrayNonEmpty(faults)
    ? Result.fail(invalid(capFaults(faults)))
    : Result.succeed(models)
}
