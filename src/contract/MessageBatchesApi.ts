import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { GivenWebhook } from "../catalog/bodies/Attachments.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { requestHeaders, withHeaders } from "./Headers.ts"
import { problems } from "./Problems.ts"

const Time = Schema.String.annotate({ format: "date-time" })

/** A batch in Anthropic's format. docs/reference/vendor-batches.md#anthropics-form */
export const MessageBatch = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message_batch"),
  processing_status: Schema.Literals(["in_progress", "canceling", "ended"]),
  request_counts: Schema.Struct({
    processing: Schema.Int,
    succeeded: Schema.Int,
    errored: Schema.Int,
    canceled: Schema.Int,
    expired: Schema.Int
  }),
  created_at: Time,
  expires_at: Time,
  ended_at: Schema.NullOr(Time),
  cancel_initiated_at: Schema.NullOr(Time),
  archived_at: Schema.NullOr(Time),
  results_url: Schema.NullOr(Schema.String)
})
export type MessageBatch = typeof MessageBatch.Type

export const MessageBatchList = Schema.Struct({
  data: Schema.Array(MessageBatch),
  has_more: Schema.Boolean,
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String)
})

export const DeletedMessageBatch = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message_batch_deleted")
})

const open = Schema.Record(Schema.String, Schema.Unknown)

export const customIdPattern = /^[a-zA-Z0-9_-]{1,64}$/u

const NewMessageBatch = Schema.Struct({
  requests: Schema.Array(
    Schema.Struct({
      custom_id: Schema.String.check(Schema.isPattern(customIdPattern)),
      params: open
    })
  ),
  webhook: Schema.optionalKey(Schema.NullOr(GivenWebhook))
})

const BatchId = Schema.String.check(Schema.isPattern(/^msgbatch_[0-9a-f]{32}$/u))
const params = {
  message_batch_id: BatchId.annotate({ description: "The id that create returned" })
}
const query = {
  beta: Schema.optionalKey(
    Schema.String.annotate({ description: "Sent by Anthropic's clients; has no effect" })
  )
}
const reads = [401, 403, 404, 405, 429, 500, 503]
const success = withHeaders(MessageBatch, ["X-Service-Cost"])
const theBatch = { 200: { description: "The batch" } }

export const createMessageBatch = HttpApiEndpoint.post(
  "createMessageBatch",
  "/v1/messages/batches",
  {
    headers: {
      "Idempotency-Key": requestHeaders["Idempotency-Key"],
      "X-Service-Max-Cost": requestHeaders["X-Service-Max-Cost"]
    },
    query,
    payload: NewMessageBatch,
    success: withHeaders(MessageBatch, [
      "X-Service-Cost",
      "X-Service-Balance",
      "X-Service-Budget-Remaining",
      "Idempotency-Replayed"
    ]),
    error: problems(400, 401, 402, 403, 404, 405, 413, 415, 422, 424, 429, 500, 503)
  }
).annotateMerge(
  documented({
    summary: "Create a batch of messages, at the price of batches",
    example: {
      requests: [
        {
          custom_id: "first",
          params: {
            model: "claude-haiku-4-5",
            max_tokens: 100,
            messages: [{ role: "user", content: "Hello" }]
          }
        }
      ]
    },
    responses: theBatch
  })
)

/** The same maximum as Anthropic's. */
export const messageBatchesMax = 1000

export const listMessageBatches = HttpApiEndpoint.get(
  "listMessageBatches",
  "/v1/messages/batches",
  {
    query: {
      ...query,
      after_id: Schema.optionalKey(BatchId),
      before_id: Schema.optionalKey(BatchId),
      limit: Schema.optionalKey(
        Schema.FiniteFromString.check(
          Schema.isInt(),
          Schema.isBetween({ minimum: 1, maximum: messageBatchesMax })
        )
      )
    },
    success: MessageBatchList,
    error: problems(400, ...reads)
  }
).annotateMerge(
  documented({
    summary: "List batches of messages",
    responses: { 200: { description: "A page" } }
  })
)

export const getMessageBatch = HttpApiEndpoint.get(
  "getMessageBatch",
  "/v1/messages/batches/:message_batch_id",
  { params, query, success, error: problems(400, ...reads) }
).annotateMerge(documented({ summary: "Get a batch of messages", responses: theBatch }))

export const deleteMessageBatch = HttpApiEndpoint.delete(
  "deleteMessageBatch",
  "/v1/messages/batches/:message_batch_id",
  { params, query, success: DeletedMessageBatch, error: problems(400, ...reads, 409) }
).annotateMerge(
  documented({
    summary: "Delete a batch of messages that has ended, and its results",
    responses: { 200: { description: "It was deleted" } }
  })
)

export const cancelMessageBatch = HttpApiEndpoint.post(
  "cancelMessageBatch",
  "/v1/messages/batches/:message_batch_id/cancel",
  { params, query, success, error: problems(400, 401, 403, 404, 405, 409, 429, 500, 502, 503) }
).annotateMerge(documented({ summary: "Cancel a batch of messages", responses: theBatch }))

export const getMessageBatchResults = HttpApiEndpoint.get(
  "getMessageBatchResults",
  "/v1/messages/batches/:message_batch_id/results",
  {
    params,
    query,
    success: Schema.Uint8Array.pipe(
      HttpApiSchema.asUint8Array({ contentType: "application/x-jsonl" })
    ),
    error: problems(400, ...reads, 409)
  }
).annotateMerge(
  documented({
    summary: "Download the results of a batch of messages",
    responses: { 200: { description: "One result per line" } }
  })
)

/** Batches of messages, in Anthropic's format. docs/reference/vendor-batches.md#anthropics-form */
export class MessageBatchesApi extends HttpApiGroup.make("messageBatches", { topLevel: true })
  .add(
    createMessageBatch,
    listMessageBatches,
    getMessageBatch,
    deleteMessageBatch,
    cancelMessageBatch,
    getMessageBatchResults
  )
  .middleware(InferenceKey) {}
