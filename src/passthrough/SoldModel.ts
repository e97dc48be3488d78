import { Result } from "effect"
import type { ModelPrice } from "../catalog/ModelPrice.ts"
import { isOfKind } from "../catalog/OpenRoutes.ts"
import type { OpenRoute, TokenModel, UsageProtocol } from "../catalog/OpenRoutes.ts"
import { dialectOf } from "../catalog/OtherRoute.ts"
import { batchPriceOf } from "../catalog/Price.ts"
import { priceAt } from "../catalog/PriceRow.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { notOffered } from "./NotOffered.ts"

/** The route of a metered call, at one moment. */
export interface MeteredRoute {
  readonly catalog: UpstreamCatalog
  readonly route: OpenRoute
  readonly protocol: UsageProtocol
  readonly nowMillis: number
  /** Whether it is a request of a batch, which has other prices. */
  readonly inBatch?: boolean
}

export interface SoldModel {
  readonly model: TokenModel
  readonly price: ModelPrice
}

/** The model and its current price. Fails with 2006 if the model has no price now, or if another route serves it. */
export const soldModel = (
  { catalog, inBatch = false, nowMillis, protocol, route }: MeteredRoute,
  name: string
): Result.Result<SoldModel, Problem> => {
  const model = catalog.priced(route.vendor, name)
  const listed = model && priceAt(model, nowMillis)
  if (model === undefined || listed === undefined) {
    return Result.fail(notOffered(catalog, route.vendor, name))
  }
  const price = inBatch ? batchPriceOf(listed) : listed
  if (price === undefined) return Result.fail(problem(2006, `${name} is not offered in batches`))
  if (isOfKind(protocol, model)) return Result.succeed({ model, price })
  const other = dialectOf(catalog.routes, model, name) ?? `No route is open for ${name}`
  return Result.fail(problem(2006, other))
}
