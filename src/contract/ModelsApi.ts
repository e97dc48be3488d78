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
  /** Where a client creates tasks of the model, or calls it. */
  path: Schema.String,
  /** No vendor key is configured: the simulator serves it. */
  sandbox: Schema.Boolean,
  /**
   * Of an alias only: the models that it names, in their order or with weights. Its price is that of the dearest.
   * docs/catalog.md#aliases
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

/** JSON Schema (draft 2020-12) of the body. */
const body_schema = Schema.Record(Schema.String, Schema.Json)

const MediaFieldView = Schema.Struct({
  kind: Schema.Literals(["image", "audio", "video"]),
  /** By magic bytes. */
  media_types: Schema.Array(Schema.String),
  max_bytes: Schema.Int,
  /** Pixels of an image's width and of its height. */
  min_side: Schema.NullOr(Schema.Int),
  max_side: Schema.NullOr(Schema.Int),
  min_seconds: Schema.NullOr(Schema.Finite),
  max_seconds: Schema.NullOr(Schema.Finite),
  /** Whether it may come in the body, as a data URI or Base64; else by URL only. */
  inline: Schema.Boolean
}).annotate({ identifier: "MediaField" })

/** A model that makes media as tasks, at the price of one period. */
export const MediaModelView = Schema.Struct({
  type: Schema.Literal("media"),
  ...modelView,
  result: MediaKind,
  price: PriceRule,
  ...priceRowView,
  body_schema,
  /** The fields of the body that take media, with what each accepts; of a list, each item. */
  media: Schema.Record(Schema.String, MediaFieldView)
}).annotate({ identifier: "Model" })

/** A model that is called, charged by the token or by another unit, at the price of one period. docs/reference/wallet.md#price-of-a-call */
export const TokenModelView = Schema.Struct({
  type: Schema.Literal("token"),
  ...modelView,
  price: ModelPriceView,
  ...priceRowView,
  /** In tokens, or in what the price counts: characters, seconds or searches. */
  input_tokens_max: Schema.Int,
  output_tokens_max: Schema.Int,
  body_schema
}).annotate({ identifier: "TokenModel" })

/** Type, model and first day of a row: the rows are in this order, also after a reload. */
export const ModelKey = Schema.String.check(Schema.isPattern(/^(?:media|token) \S{1,400} [\d-]*$/u))

/** The models of the catalog. docs/reference/models.md#labels */
export class ModelsApi extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("listModels", "/models", {
    query: pageQuery(ModelKey),
    success: pageOf(Schema.Union([MediaModelView, TokenModelView])),
    error
  })
) {}
