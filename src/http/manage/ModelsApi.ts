import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Amount, PriceRule } from "../../catalog/Price.ts"
import { ResultKind } from "../../domain/Task.ts"
import { manageErrors as error } from "./ManageErrors.ts"
import { pageOf, pageQuery } from "./Paging.ts"

/** One model: its path, its request body, its kind of result and its price. */
export const ModelView = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  path: Schema.String,
  result: ResultKind,
  /** No vendor key is configured: the simulator serves it. */
  sandbox: Schema.Boolean,
  price: PriceRule,
  /** JSON Schema (draft 2020-12) of the create body. */
  body_schema: Schema.Record(Schema.String, Schema.Json)
}).annotate({ identifier: "Model" })

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

/** A model that is charged by the token, at the price of one period. docs/reference/wallet.md#price-of-a-call */
export const TokenModelView = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  /** No vendor key is configured: the simulator serves it. */
  sandbox: Schema.Boolean,
  /** Credits for a million tokens; `long`: of a call whose prompt has more than `above` tokens. */
  price: Schema.Struct({
    per: Schema.Literal("million_tokens"),
    ...rates,
    long: Schema.NullOr(Schema.Struct({ above: Schema.Int, ...rates }))
  }),
  /** The first day of the price, from 00:00 UTC; null: it has no first day. */
  valid_from: Schema.NullOr(Schema.String),
  /** The day on which the next price begins. */
  valid_until: Schema.NullOr(Schema.String),
  input_tokens_max: Schema.Int,
  output_tokens_max: Schema.Int,
  /** The day on which the vendor ends the model. */
  sunset: Schema.NullOr(Schema.String),
  /** The model that the vendor recommends instead. */
  replacement: Schema.NullOr(Schema.String)
}).annotate({ identifier: "TokenModel" })

/** The index of a model in the catalog. */
export const ModelKey = Schema.String.check(Schema.isPattern(/^\d{1,6}$/u))

/** The catalog. docs/reference/models.md#labels */
export class ModelsApi extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("listModels", "/models", {
    query: pageQuery(ModelKey),
    success: pageOf(ModelView),
    error
  }),
  HttpApiEndpoint.get("listTokenModels", "/token-models", {
    query: pageQuery(ModelKey),
    success: pageOf(TokenModelView),
    error
  })
) {}
