import { Context, Metric } from "effect"
import type { ModelPrice } from "./ModelPrice.ts"
import type { TokenModel } from "./OpenRoutes.ts"
import { priceAt } from "./PriceRow.ts"
import { isPinned } from "./UpstreamCatalog.ts"
import type { UpstreamCatalog } from "./UpstreamCatalog.ts"

/**
 * Counts calls to which another model than the requested one responded, but that were charged at the requested model's
 * price.
 */
const otherResponders = Metric.counter("gateway_other_model_responses_total", {
  description: "Responses of another model than the requested one, charged at the requested price",
  incremental: true
})

/** A request that is charged by its usage, at the prices that applied when it began. */
export interface TokenRequest {
  /** The requested model. */
  readonly model: TokenModel
  readonly price: ModelPrice
  /** Models that may respond instead of the requested one. */
  readonly fallbacks: ReadonlyArray<{ readonly model: TokenModel }>
  /** Provides the price if another model responds. */
  readonly catalog: UpstreamCatalog
  readonly nowMillis: number
}

interface SettledPrice {
  readonly price: ModelPrice
  /** The model whose price was charged, if it is not the requested one. */
  readonly pricedAs?: string
}

/**
 * The price of the model that responded, if it has one and the request did not pin a version or named it as a
 * fallback; else the price of the requested model. docs/reference/wallet.md#the-model-that-responded, ADR 0130.
 */
export const settledPrice = (
  { catalog, fallbacks, model, nowMillis, price }: TokenRequest,
  requested: string | null,
  responder: string | undefined
): SettledPrice => {
  if (responder === undefined || responder === requested) return { price }
  const responded = catalog.priced(model.vendor, responder)
  if (responded === model) return { price }
  const isAllowed =
    (requested !== null && !isPinned(requested)) ||
    fallbacks.some((fallback) => fallback.model === responded)
  const other = responded && priceAt(responded, nowMillis)
  if (responded !== undefined && other !== undefined && isAllowed) {
    return { price: other, pricedAs: responded.model }
  }
  const { vendor } = model
  Metric.withAttributes(otherResponders, { vendor, model: model.model }).updateUnsafe(
    1,
    Context.empty()
  )
  return { price }
}
