import { Schema } from "effect"
import { EventId, UserId } from "./Ids.ts"
import { TaskResult, Timestamp } from "./Task.ts"

/** Spec, Events. */
export const EventType = Schema.Literals([
  "task.created",
  "task.succeeded",
  "task.failed",
  "balance.low"
])
export type EventType = typeof EventType.Type

/** Spec, Task events: flat data; `payload` equals what GET answers at that point. */
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

/** Spec, Balance events: nested data; amounts are strings with two decimals. */
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

/** Spec, Envelope: what is sent, signed byte for byte. */
export const EventEnvelope = Schema.Union([TaskCreated, TaskSucceeded, TaskFailed, BalanceLow])
export type EventEnvelope = typeof EventEnvelope.Type

/** An event ready to be stored: its id and the bytes that are sent. */
export interface EventBody {
  readonly id: EventId
  readonly body: Uint8Array
}
