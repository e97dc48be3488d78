import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ResultKind } from "../domain/Task.ts"
import { PriceRule } from "../models/Price.ts"
import { manageErrors as error } from "./ManageErrors.ts"

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

/** The catalog. Contract 3. */
export class ModelsApi extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("listModels", "/models", {
    success: Schema.Struct({ data: Schema.Array(ModelView), next_cursor: Schema.Null }),
    error
  })
) {}
