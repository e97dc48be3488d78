import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { PriceRule } from "../../catalog/Price.ts"
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

/** The index of a model in the catalog. */
export const ModelKey = Schema.String.check(Schema.isPattern(/^\d{1,6}$/u))

/** The catalog. docs/reference/models.md#labels */
export class ModelsApi extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("listModels", "/models", {
    query: pageQuery(ModelKey),
    success: pageOf(ModelView),
    error
  })
) {}
