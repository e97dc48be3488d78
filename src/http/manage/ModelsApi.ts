import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { PriceRule } from "../../catalog/Price.ts"
import { ResultKind } from "../../domain/Task.ts"
import { manageErrors as error } from "./ManageErrors.ts"
import { pageOf, pageQuery } from "./Paging.ts"

/** One model: where it is called, what it takes, what it makes and what that costs. */
export const ModelView = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  path: Schema.String,
  result: ResultKind,
  /** No vendor key is configured: the simulator serves it. Contract 7. */
  sandbox: Schema.Boolean,
  price: PriceRule,
  /** JSON Schema (draft 2020-12) of the create body. */
  body_schema: Schema.Record(Schema.String, Schema.Json)
}).annotate({ identifier: "Model" })

/** A model's place in the catalog. */
export const ModelKey = Schema.String.check(Schema.isPattern(/^\d{1,6}$/u))

/** The catalog. Contract 3. */
export class ModelsApi extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("listModels", "/models", {
    query: pageQuery(ModelKey),
    success: pageOf(ModelView),
    error
  })
) {}
