import type { ModelPrice } from "../../../catalog/ModelPrice.ts"
import type { TokenPrice } from "../../../catalog/Price.ts"
import type { PricePeriod, PriceRow } from "../../../catalog/PriceRow.ts"

export const showRow = (
  { deprecation, replacement, source, sunset }: Omit<PriceRow<unknown>, "price">,
  period: PricePeriod<unknown>
) => ({
  valid_from: period.from,
  valid_until: period.until,
  deprecation: deprecation ?? sunset ?? null,
  sunset: sunset ?? null,
  replacement: replacement ?? null,
  source: period.source ?? source ?? null
})

/** All rates, including those that default to another one. */
const showRates = (rates: Omit<TokenPrice, "per" | "long" | "batch">) => {
  const write = rates.cacheWrite ?? rates.input
  return {
    input: rates.input,
    output: rates.output,
    cached_input: rates.cachedInput ?? rates.input,
    cache_write: write,
    cache_write_long: rates.cacheWriteLong ?? write,
    reasoning: rates.reasoning ?? rates.output,
    audio_input: rates.audioInput ?? rates.input,
    image_output: rates.imageOutput ?? rates.output
  }
}

export const showModelPrice = (price: ModelPrice) =>
  price.per === "million_tokens"
    ? {
        per: price.per,
        ...showRates(price),
        batch: price.batch ?? null,
        long:
          price.long === undefined ? null : { above: price.long.above, ...showRates(price.long) },
        tools: price.tools ?? {}
      }
    : price
