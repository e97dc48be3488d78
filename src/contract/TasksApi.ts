import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Text } from "../catalog/bodies/Fields.ts"
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

/** A model of an alias that was passed over. */
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
  /** Of an alias only: the model that did it, or that the task is at. */
  vendor: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  /** Of an alias only: the models that did not do it, and why. docs/reference/aliases.md#reasons */
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
  /** The hash of the catalog that it was accepted and priced with. */
  catalog: Schema.NullOr(Schema.String),
  /** The name of the key that created it; `null`: it had none. */
  key_name: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  started_at: Schema.NullOr(Timestamp),
  ended_at: Schema.NullOr(Timestamp),
  /** Only when it was given. */
  metadata: Schema.optionalKey(Metadata),
  /** Only of a task that a batch created. docs/reference/batches.md */
  batch_id: Schema.optionalKey(TaskBatchId)
}

/** A result to look at. docs/reference/tasks.md#history */
const Preview = Schema.Struct({
  kind: Schema.Literals(["images", "videos"]),
  /** The first result: signed, kept by the gateway. */
  url: Schema.String,
  expires_at: Timestamp,
  /** How many results there are. */
  count: Schema.Int
}).annotate({ identifier: "TaskPreview" })

export const TaskListItem = Schema.Struct({
  ...taskFields,
  /** Its first 200 characters; absent when the body has none, or is no longer kept. */
  prompt: Schema.optionalKey(Schema.String),
  /** Only while the first result is an image or a video that is still kept. */
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
  /** Of the task's own webhook; `null`: the endpoint's. */
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
  /** Its field in the body, which holds `artifact:` and its id. */
  pointer: Schema.String,
  media_type: Schema.String,
  size: Schema.Int,
  url: Schema.String,
  expires_at: Timestamp
}).annotate({ identifier: "TaskInput" })

const TaskCandidate = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  /** What the task costs by this model; null: it takes no part. */
  price: Schema.NullOr(CreditsFromString),
  /** Why it was passed over; null: it was not, or not yet. */
  skipped: Schema.NullOr(
    Schema.Struct({
      reason: SkipReason,
      at: Timestamp,
      /** The attempt that its vendor refused; null: nothing was sent. */
      attempt: Schema.NullOr(Schema.Int)
    })
  )
}).annotate({ identifier: "TaskCandidate" })

/** A task with its moves, attempts, ledger entries and deliveries, each in the order of time. */
export const TaskTimeline = Schema.Struct({
  ...taskFields,
  /** As stored: inline media are replaced by references. */
  body: Schema.Json,
  /** The inline media of the body that are still kept. docs/reference/tasks.md#history */
  inputs: Schema.Array(TaskInput),
  result_kind: ResultKind,
  result: Schema.NullOr(Schema.Array(Schema.String)),
  /** Of an alias only: its models, in the order in which they are tried. */
  candidates: Schema.optionalKey(Schema.Array(TaskCandidate)),
  moves: Schema.Array(Move),
  attempts: Schema.Array(VendorAttempt),
  entries: Schema.Array(WalletEntry),
  deliveries: Schema.Array(TaskDelivery)
}).annotate({ identifier: "TaskTimeline" })

/** The name of a request in the cursor of a page of receipts. */
export const ReceiptKey = Schema.String.check(Schema.isPattern(/^[0-9a-f]{20}$/u))

/** What one request of a batch was charged. docs/reference/vendor-batches.md#receipts */
export const BatchReceiptView = Schema.Struct({
  /** The client's name of the request; null: it was erased. */
  custom_id: Schema.NullOr(Schema.String),
  /** As the request names it. */
  model: Schema.String,
  outcome: Schema.Literals(["settled", "released"]),
  http_status: Schema.NullOr(Schema.Int),
  /** With all decimals. */
  cost: ExactCreditsFromString,
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  request_id: Schema.NullOr(Schema.String),
  created_at: Timestamp
}).annotate({ identifier: "BatchReceipt" })

/** `?metadata[key]=value`, of several all. docs/reference/tasks.md#metadata */
const metadataQuery = Schema.Record(Schema.TemplateLiteral(["metadata[", Schema.String, "]"]), Text)

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
