import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { GivenWebhook } from "../catalog/bodies/Attachments.ts"
import { FileId } from "../domain/Ids.ts"
import { Metadata } from "../domain/task/Metadata.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { requestHeaders, withHeaders } from "./Headers.ts"
import { listLimit } from "./Lists.ts"
import { problems } from "./Problems.ts"

const Millis = Schema.NullOr(Schema.Int)

/** A batch in OpenAI's format. docs/reference/vendor-batches.md */
export const BatchObject = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("batch"),
  endpoint: Schema.String,
  model: Schema.String,
  errors: Schema.NullOr(
    Schema.Struct({
      object: Schema.Literal("list"),
      data: Schema.Array(
        Schema.Struct({
          code: Schema.String,
          message: Schema.String,
          param: Schema.NullOr(Schema.String),
          line: Schema.NullOr(Schema.Int)
        })
      )
    })
  ),
  input_file_id: Schema.String,
  completion_window: Schema.Literal("24h"),
  status: Schema.Literals([
    "validating",
    "failed",
    "in_progress",
    "finalizing",
    "completed",
    "expired",
    "cancelling",
    "cancelled"
  ]),
  output_file_id: Schema.NullOr(FileId),
  error_file_id: Schema.NullOr(FileId),
  created_at: Schema.Int,
  in_progress_at: Millis,
  expires_at: Millis,
  finalizing_at: Millis,
  completed_at: Millis,
  failed_at: Millis,
  expired_at: Millis,
  cancelling_at: Millis,
  cancelled_at: Millis,
  request_counts: Schema.Struct({
    total: Schema.Int,
    completed: Schema.Int,
    failed: Schema.Int
  }),
  usage: Schema.optionalKey(
    Schema.Struct({
      input_tokens: Schema.Int,
      input_tokens_details: Schema.Struct({ cached_tokens: Schema.Int }),
      output_tokens: Schema.Int,
      output_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int }),
      total_tokens: Schema.Int
    })
  ),
  metadata: Schema.NullOr(Metadata)
})
export type BatchObject = typeof BatchObject.Type

export const BatchObjectList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(BatchObject),
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
  has_more: Schema.Boolean
})

/** The paths that a request of a batch may have. */
export const BatchEndpoint = Schema.Literals([
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/embeddings"
])

export const NewBatch = Schema.Struct({
  input_file_id: FileId,
  endpoint: BatchEndpoint,
  completion_window: Schema.Literal("24h"),
  metadata: Schema.optionalKey(Schema.NullOr(Schema.Unknown)),
  webhook: Schema.optionalKey(Schema.NullOr(Schema.Unknown))
})

const BatchId = Schema.String.check(Schema.isPattern(/^batch_[0-9a-f]{32}$/u))
const params = { batch_id: BatchId.annotate({ description: "The id that create returned" }) }
const reads = [401, 403, 404, 405, 429, 500, 503]
const success = withHeaders(BatchObject, ["X-Service-Cost"])
const theBatch = { 200: { description: "The batch" } }

export const createBatch = HttpApiEndpoint.post("createBatch", "/v1/batches", {
  headers: {
    "Idempotency-Key": requestHeaders["Idempotency-Key"],
    "X-Service-Max-Cost": requestHeaders["X-Service-Max-Cost"]
  },
  payload: Schema.Struct({
    ...NewBatch.fields,
    metadata: Schema.optionalKey(Schema.NullOr(Metadata)),
    webhook: Schema.optionalKey(Schema.NullOr(GivenWebhook))
  }),
  success: withHeaders(BatchObject, [
    "X-Service-Cost",
    "X-Service-Balance",
    "X-Service-Budget-Remaining",
    "Idempotency-Replayed"
  ]),
  error: problems(400, 401, 402, 403, 404, 405, 413, 415, 422, 424, 429, 500, 503)
}).annotateMerge(
  documented({
    summary: "Create a batch of requests, at the price of batches",
    example: {
      input_file_id: "file-01a1fde821f47d828c09ff1738b15d2e",
      endpoint: "/v1/chat/completions",
      completion_window: "24h"
    },
    responses: theBatch
  })
)

export const listBatches = HttpApiEndpoint.get("listBatches", "/v1/batches", {
  query: { after: Schema.optionalKey(BatchId), limit: Schema.optionalKey(listLimit) },
  success: BatchObjectList,
  error: problems(400, ...reads)
}).annotateMerge(
  documented({ summary: "List batches", responses: { 200: { description: "A page" } } })
)

export const getBatch = HttpApiEndpoint.get("getBatch", "/v1/batches/:batch_id", {
  params,
  success,
  error: problems(...reads)
}).annotateMerge(documented({ summary: "Get a batch", responses: theBatch }))

export const cancelBatch = HttpApiEndpoint.post("cancelBatch", "/v1/batches/:batch_id/cancel", {
  params,
  success,
  error: problems(400, 401, 403, 404, 405, 409, 429, 500, 502, 503)
}).annotateMerge(documented({ summary: "Cancel a batch", responses: theBatch }))

/** Batches of requests that a vendor runs within a day, in OpenAI's format. docs/reference/vendor-batches.md */
export class BatchesApi extends HttpApiGroup.make("batches", { topLevel: true })
  .add(createBatch, listBatches, getBatch, cancelBatch)
  .middleware(InferenceKey) {}
