import { Schema } from "effect"
import { ApiKeyId, EndpointId, EventId, UserId } from "./Ids.ts"
import { TaskResult, Timestamp } from "./task/Task.ts"
import { TaskBatch } from "./task/TaskBatch.ts"

/** docs/reference/webhooks.md#events */
export const EventType = Schema.Literals([
  "task.created",
  "task.succeeded",
  "task.failed",
  "task_batch.completed",
  "balance.low",
  "webhook.failing",
  "key.expiring"
])
export type EventType = typeof EventType.Type

/**
 * OpenAI's names of events, which webhooks of the format `openai` receive instead.
 * docs/reference/webhooks.md#openais-format
 */
export const OpenAiEventType = Schema.Literals([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "batch.completed",
  "batch.failed",
  "batch.expired",
  "batch.cancelled",
  "video.completed",
  "video.failed"
])
export type OpenAiEventType = typeof OpenAiEventType.Type

/** The event types that a delivery may have. */
export const DeliveryType = Schema.Literals([...EventType.literals, ...OpenAiEventType.literals])
export type DeliveryType = typeof DeliveryType.Type

/** Events of the ledger, which a user's event stream follows. docs/reference/http.md#events-of-a-user */
export const StreamedEventType = EventType.pick([
  "task.created",
  "task.succeeded",
  "task.failed",
  "task_batch.completed",
  "balance.low"
])
export type StreamedEventType = typeof StreamedEventType.Type

/** `payload` equals the response of GET at that point. docs/reference/webhooks.md#task-events */
export const TaskEventData = Schema.Struct({
  vendor: Schema.String,
  model_name: Schema.String,
  payload: TaskResult
})

const taskEvent = <Type extends EventType>(type: Type) =>
  Schema.Struct({
    id: EventId,
    type: Schema.Literal(type),
    created_at: Timestamp,
    data: TaskEventData
  })

export const TaskCreated = taskEvent("task.created").annotate({ identifier: "TaskCreated" })
export const TaskSucceeded = taskEvent("task.succeeded").annotate({ identifier: "TaskSucceeded" })
export const TaskFailed = taskEvent("task.failed").annotate({ identifier: "TaskFailed" })

/** Amounts are strings with two decimals. docs/reference/webhooks.md#balance-events */
export const BalanceLow = Schema.Struct({
  id: EventId,
  type: Schema.Literal("balance.low"),
  created_at: Timestamp,
  data: Schema.Struct({
    user_id: UserId,
    payload: Schema.Struct({
      available_balance: Schema.String,
      trigger_threshold: Schema.String,
      currency: Schema.Literal("credits")
    })
  })
}).annotate({ identifier: "BalanceLow" })

/** All tasks of a batch have ended; `payload` equals its GET without the tasks. docs/reference/batches.md#event */
export const TaskBatchCompleted = Schema.Struct({
  id: EventId,
  type: Schema.Literal("task_batch.completed"),
  created_at: Timestamp,
  data: Schema.Struct({ user_id: UserId, payload: TaskBatch })
}).annotate({ identifier: "TaskBatchCompleted" })

/** An endpoint has failed for a day. docs/reference/webhooks.md#failing-endpoints */
export const WebhookFailing = Schema.Struct({
  id: EventId,
  type: Schema.Literal("webhook.failing"),
  created_at: Timestamp,
  data: Schema.Struct({
    user_id: UserId,
    payload: Schema.Struct({
      endpoint_id: EndpointId,
      url: Schema.String,
      failing_since: Timestamp
    })
  })
}).annotate({ identifier: "WebhookFailing" })

/** A key expires within a week. docs/reference/webhooks.md#expiring-keys */
export const KeyExpiring = Schema.Struct({
  id: EventId,
  type: Schema.Literal("key.expiring"),
  created_at: Timestamp,
  data: Schema.Struct({
    user_id: UserId,
    payload: Schema.Struct({
      api_key_id: ApiKeyId,
      name: Schema.String,
      preview: Schema.String,
      expires_at: Timestamp
    })
  })
}).annotate({ identifier: "KeyExpiring" })

/** The body of a delivery, signed byte for byte. docs/reference/webhooks.md#envelope */
export const EventEnvelope = Schema.Union([
  TaskCreated,
  TaskSucceeded,
  TaskFailed,
  TaskBatchCompleted,
  BalanceLow,
  WebhookFailing,
  KeyExpiring
])
export type EventEnvelope = typeof EventEnvelope.Type

/** An event to store: its id and the bytes to send. */
export interface EventBody {
  readonly id: EventId
  readonly body: Uint8Array
  /** The same event in OpenAI's format, if it has one. */
  readonly openai?: { readonly type: OpenAiEventType; readonly body: string } | undefined
}
