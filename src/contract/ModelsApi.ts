import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { PriceRule } from "../catalog/Price.ts"
import { MediaKind } from "../domain/task/Task.ts"
import { pageOf, pageQuery } from "./Lists.ts"
import { manageErrors as error } from "./ManageErrors.ts"
import { ModelPriceView, priceRowView } from "./Prices.ts"

const modelView = {
  vendor: Schema.String,
  model: Schema.String,
  /** The path at which a client creates tasks of the model, or calls it. */
  path: Schema.String,
  /** Whether the simulator serves the model, because no vendor key is configured. */
  sandbox: Schema.Boolean,
  /**
   * Present for an alias: its models, in their order or with weights. The price of an alias is that of its most
   * expensive model. docs/catalog.md#aliases
   */
  candidates: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        vendor: Schema.String,
        model: Schema.String,
        weight: Schema.NullOr(Schema.Int)
      })
    )
  )
}

/** The JSON Schema (draft 2020-12) of the body. */
const body_schema = Schema.Record(Schema.String, Schema.Json)

const MediaFieldView = Schema.Struct({
  kind: Schema.Literals(["image", "audio", "video"]),
  /** The accepted media types, detected by magic bytes. */
  media_types: Schema.Array(Schema.String),
  max_bytes: Schema.Int,
  /** Pixels of an image's width and height. */
  min_side: Schema.NullOr(Schema.Int),
  max_side: Schema.NullOr(Schema.Int),
  min_seconds: Schema.NullOr(Schema.Finite),
  max_seconds: Schema.NullOr(Schema.Finite),
  /** Whether the medium may be in the body, as a data URI or Base64. Otherwise it must be a URL. */
  inline: Schema.Boolean
}).annotate({ identifier: "MediaField" })

/** A model that generates media in tasks, with the price of one period. */
export const MediaModelView = Schema.Struct({
  type: Schema.Literal("media"),
  ...modelView,
  result: MediaKind,
  price: PriceRule,
  ...priceRowView,
  body_schema,
  /** The media fields of the body and what each accepts. For a list field, what each item must be. */
  media: Schema.Record(Schema.String, MediaFieldView)
}).annotate({ identifier: "Model" })

/**
 * A called model, charged by tokens or by another unit, with the price of one period.
 * docs/reference/wallet.md#price-of-a-call
 */
export const TokenModelView = Schema.Struct({
  type: Schema.Literal("token"),
  ...modelView,
  price: ModelPriceView,
  ...priceRowView,
  /** In tokens, or in the unit of the price: characters, seconds or searches. */
  input_tokens_max: Schema.Int,
  output_tokens_max: Schema.Int,
  body_schema
}).annotate({ identifier: "TokenModel" })

/** Type, model and first day of a row. Rows keep this order after a reload. */
export const ModelKey = Schema.String.check(Schema.isPattern(/^(?:media|token) \S{1,400} [\d-]*$/u))

/** The models of the catalog. docs/reference/models.md#labels */
export class ModelsApi extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("listModels", "/models", {
    query: pageQuery(ModelKey),
    success: pageOf(Schema.Union([MediaModelView, TokenModelView])),
    error
  })
) {}
