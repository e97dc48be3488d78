import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { storable, Text } from "../catalog/bodies/Fields.ts"
import { CreditsFromString, ExactCreditsFromString } from "../domain/Credits.ts"
import { ApiKeyId, DeliveryId, EndpointId, EventId, TaskBatchId, TaskId } from "../domain/Ids.ts"
import { SkipReason } from "../domain/task/Candidate.ts"
import { Metadata } from "../domain/task/Metadata.ts"
import { ResultKind, TaskAction, TaskError, TaskStatus, Timestamp } from "../domain/task/Task.ts"
import { DeliveryStatus, FailureClass } from "../domain/Webhook.ts"
import {
  costQuery,
  ofUser,
  pageOf,
  pageQuery,
  searchQuery,
  timeQuery,
  traceQuery
} from "./Lists.ts"
import { WalletEntry } from "./manage/WalletApi.ts"
import { manageErrors as error } from "./ManageErrors.ts"

/** A skipped model of an alias. */
export const SkippedModel = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  reason: SkipReason
}).annotate({ identifier: "SkippedModel" })

/** The money of a task: held while it runs, captured and released when it has ended. */
export const Receipt = Schema.Struct({
  held: CreditsFromString,
  captured: CreditsFromString,
  released: CreditsFromString,
  currency: Schema.Literal("credits"),
  /** Present for an alias: the model that ran the task, or that currently runs it. */
  vendor: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  /** Present for an alias: the models that were skipped, and why. docs/reference/aliases.md#reasons */
  skipped: Schema.optionalKey(Schema.Array(SkippedModel))
}).annotate({ identifier: "Receipt" })

const taskFields = {
  id: TaskId,
  vendor: Schema.String,
  model: Schema.String,
  action: TaskAction,
  status: TaskStatus,
  error: Schema.NullOr(TaskError),
  sandbox: Schema.Boolean,
  receipt: Receipt,
  /** The hash of the catalog under which the task was accepted and priced. */
  catalog: Schema.NullOr(Schema.String),
  /** The name of the key that created it; `null` if it was created without a key. */
  key_name: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  started_at: Schema.NullOr(Timestamp),
  ended_at: Schema.NullOr(Timestamp),
  /** Present if the client sent any. */
  metadata: Schema.optionalKey(Metadata),
  /** Present for a task that a batch created. docs/reference/batches.md */
  batch_id: Schema.optionalKey(TaskBatchId)
}

/** A preview of the results. docs/reference/tasks.md#history */
const Preview = Schema.Struct({
  kind: Schema.Literals(["images", "videos"]),
  /** The signed URL of the first result, which the gateway keeps. */
  url: Schema.String,
  expires_at: Timestamp,
  /** The number of results. */
  count: Schema.Int
}).annotate({ identifier: "TaskPreview" })

export const TaskListItem = Schema.Struct({
  ...taskFields,
  /** The first 200 characters of the prompt. Absent if the body has none or is no longer kept. */
  prompt: Schema.optionalKey(Schema.String),
  /** Present if the first result is an image or a video that is still kept. */
  preview: Schema.optionalKey(Preview)
}).annotate({ identifier: "TaskListItem" })

const Move = Schema.Struct({
  status: TaskStatus,
  at: Timestamp,
  trace_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "TaskMove" })

const VendorAttempt = Schema.Struct({
  n: Schema.Int,
  vendor: Schema.String,
  account_id: Schema.String,
  state: Schema.Literals(["submitting", "submitted", "refused", "ambiguous"]),
  failure_class: Schema.NullOr(Schema.String),
  started_at: Timestamp,
  answered_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "VendorAttempt" })

const TaskDelivery = Schema.Struct({
  id: DeliveryId,
  endpoint_id: EndpointId,
  /** The URL of the task's own webhook; `null` if the endpoint's URL is used. */
  webhook_url: Schema.NullOr(Schema.String),
  event_id: EventId,
  type: Schema.String,
  status: DeliveryStatus,
  trace_id: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  updated_at: Timestamp,
  attempts: Schema.Array(
    Schema.Struct({
      seq: Schema.Int,
      due_at: Schema.NullOr(Timestamp),
      started_at: Schema.NullOr(Timestamp),
      ended_at: Schema.NullOr(Timestamp),
      status: Schema.NullOr(Schema.Int),
      failure: Schema.NullOr(FailureClass)
    })
  )
}).annotate({ identifier: "TaskDelivery" })

const TaskInput = Schema.Struct({
  /** The body field that contains `artifact:` and the input's id. */
  pointer: Schema.String,
  media_type: Schema.String,
  size: Schema.Int,
  url: Schema.String,
  expires_at: Timestamp
}).annotate({ identifier: "TaskInput" })

const TaskCandidate = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  /** The price of the task with this model; null if the model is not a candidate. */
  price: Schema.NullOr(CreditsFromString),
  /** Why it was skipped; null if it was not skipped, or not yet. */
  skipped: Schema.NullOr(
    Schema.Struct({
      reason: SkipReason,
      at: Timestamp,
      /** The attempt that the vendor refused; null if nothing was sent. */
      attempt: Schema.NullOr(Schema.Int)
    })
  )
}).annotate({ identifier: "TaskCandidate" })

/** A task with its state changes, attempts, ledger entries and deliveries, each in chronological order. */
export const TaskTimeline = Schema.Struct({
  ...taskFields,
  /** As stored: inline media are replaced by references. */
  body: Schema.Json,
  /** The inline media of the body that are still kept. docs/reference/tasks.md#history */
  inputs: Schema.Array(TaskInput),
  result_kind: ResultKind,
  result: Schema.NullOr(Schema.Array(Schema.String)),
  /** Present while it runs at a vendor that reports progress: per cent, which never go down. */
  progress: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))),
  /** Present for an alias: its models, in the order in which they are tried. */
  candidates: Schema.optionalKey(Schema.Array(TaskCandidate)),
  moves: Schema.Array(Move),
  attempts: Schema.Array(VendorAttempt),
  entries: Schema.Array(WalletEntry),
  deliveries: Schema.Array(TaskDelivery)
}).annotate({ identifier: "TaskTimeline" })

/** Identifies a request in the cursor of a page of receipts. */
export const ReceiptKey = Schema.String.check(Schema.isPattern(/^[0-9a-f]{20}$/u))

/** The charge of one request of a batch. docs/reference/vendor-batches.md#receipts */
export const BatchReceiptView = Schema.Struct({
  /** The client's name of the request; null if it was erased. */
  custom_id: Schema.NullOr(Schema.String),
  /** The model as the request names it. */
  model: Schema.String,
  outcome: Schema.Literals(["settled", "released"]),
  http_status: Schema.NullOr(Schema.Int),
  /** With all decimals. */
  cost: ExactCreditsFromString,
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  request_id: Schema.NullOr(Schema.String),
  created_at: Timestamp
}).annotate({ identifier: "BatchReceipt" })

/** `?metadata[key]=value`. If there are several, all must match. docs/reference/tasks.md#metadata */
const metadataQuery = Schema.Record(
  Schema.TemplateLiteral(["metadata[", Schema.String, "]"]).check(storable),
  Text
)

/** A user's own tasks. docs/reference/tasks.md#history */
export class TasksApi extends HttpApiGroup.make("tasks").add(
  HttpApiEndpoint.get("listTasks", "/tasks", {
    query: Schema.StructWithRest(
      Schema.Struct({
        ...pageQuery(TaskId),
        ...timeQuery,
        ...traceQuery,
        ...costQuery,
        ...ofUser,
        ...searchQuery(
          "The id of a task, batch or trace, an idempotency key, or words of prompt and metadata"
        ),
        result_kind: Schema.optionalKey(ResultKind),
        status: Schema.optionalKey(TaskStatus),
        api_key_id: Schema.optionalKey(ApiKeyId),
        model: Schema.optionalKey(Text.check(Schema.isNonEmpty())),
        vendor: Schema.optionalKey(Text.check(Schema.isNonEmpty()))
      }),
      [metadataQuery]
    ),
    success: pageOf(TaskListItem),
    error
  }),
  HttpApiEndpoint.get("getTask", "/tasks/:id", {
    params: { id: TaskId },
    query: ofUser,
    success: TaskTimeline,
    error
  }),
  HttpApiEndpoint.get("listTaskReceipts", "/tasks/:id/receipts", {
    params: { id: TaskId },
    query: { ...pageQuery(ReceiptKey), ...ofUser },
    success: pageOf(BatchReceiptView),
    error
  })
) {}
