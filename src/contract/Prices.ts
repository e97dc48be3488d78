import { Schema } from "effect"
import { UnitPrice } from "../catalog/ModelPrice.ts"
import { Amount, PriceRule, ToolPrice } from "../catalog/Price.ts"

/** The members of every price row. docs/catalog.md#price-rows */
export const priceRowView = {
  /** The first day of the price, from 00:00 UTC; null if it has no first day. */
  valid_from: Schema.NullOr(Schema.String),
  /** The day on which the next price begins, or from which the model has no price. */
  valid_until: Schema.NullOr(Schema.String),
  /** The day from which the vendor advises against the model. */
  deprecation: Schema.NullOr(Schema.String),
  /** The day on which the vendor ends the model. */
  sunset: Schema.NullOr(Schema.String),
  /** The model that the vendor recommends instead. */
  replacement: Schema.NullOr(Schema.String),
  /** Where and when the price was read. */
  source: Schema.NullOr(Schema.String)
}

const rates = {
  input: Amount,
  output: Amount,
  cached_input: Amount,
  cache_write: Amount,
  cache_write_long: Amount,
  reasoning: Amount,
  audio_input: Amount,
  image_output: Amount
}

/** Credits per million tokens. `long`: for a call whose prompt has more than `above` tokens. */
const TokenPriceView = Schema.Struct({
  per: Schema.Literal("million_tokens"),
  ...rates,
  /** The fraction of the rates that a request of a batch costs; null if the model is not sold in batches. */
  batch: Schema.NullOr(Amount),
  long: Schema.NullOr(Schema.Struct({ above: Schema.Int, ...rates })),
  /** Prices of tools that the vendor runs. All other such tools are refused. */
  tools: Schema.Record(Schema.String, ToolPrice)
}).annotate({ identifier: "TokenPrice" })

/** Credits per unit other than tokens. */
const UnitPriceView = UnitPrice.annotate({ identifier: "UnitPrice" })

export const ModelPriceView = Schema.Union([TokenPriceView, UnitPriceView])

export const PriceView = Schema.Union([PriceRule, TokenPriceView, UnitPriceView])
