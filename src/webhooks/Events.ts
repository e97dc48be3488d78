import { DateTime, Schema } from "effect"
import * as Credits from "../domain/Credits.ts"
import { EventEnvelope } from "../domain/Event.ts"
import type { EventBody } from "../domain/Event.ts"
import { makeEventId, makeOutcomeEventId, makeTestEventId } from "../domain/Ids.ts"
import type { ApiKeyId, EndpointId, UserId } from "../domain/Ids.ts"
import type { TaskResult } from "../domain/task/Task.ts"
import type { TaskBatch } from "../domain/task/TaskBatch.ts"

const encode = Schema.encodeSync(EventEnvelope)
const utf8 = new TextEncoder()

/**
 * Serializes an event. The bytes are built once, and stored, signed and sent unchanged.
 * docs/reference/webhooks.md#delivery-request
 */
const toBody = (envelope: EventEnvelope): EventBody => ({
  id: envelope.id,
  body: utf8.encode(JSON.stringify(encode(envelope)))
})

/** How a task's events name its model. */
export interface TaskSubject {
  readonly vendor: string
  readonly model: string
}

/**
 * `task.created`, `task.succeeded` or `task.failed`, depending on the status in the payload.
 * docs/reference/webhooks.md#task-events
 */
export const taskEvent = (
  { model, vendor }: TaskSubject,
  payload: TaskResult,
  now: DateTime.Utc
): EventBody => {
  const data = { vendor, model_name: model, payload }
  const outcomeId = makeOutcomeEventId(payload.task_info.id, DateTime.toEpochMillis(now))
  switch (payload.task_info.status) {
    case "completed":
      return toBody({ id: outcomeId, type: "task.succeeded", created_at: now, data })
    case "failed":
      return toBody({ id: outcomeId, type: "task.failed", created_at: now, data })
    default: {
      const id = makeEventId(DateTime.toEpochMillis(now))
      return toBody({ id, type: "task.created", created_at: now, data })
    }
  }
}

/** Amounts are strings with two decimals. docs/reference/webhooks.md#balance-events */
export const balanceLow = (
  wallet: {
    readonly userId: UserId
    readonly available: Credits.Credits
    readonly threshold: Credits.Credits
  },
  now: DateTime.Utc
): EventBody => {
  const id = makeEventId(DateTime.toEpochMillis(now))
  return toBody({
    id,
    type: "balance.low",
    created_at: now,
    data: {
      user_id: wallet.userId,
      payload: {
        available_balance: Credits.format(wallet.available),
        trigger_threshold: Credits.format(wallet.threshold),
        currency: "credits"
      }
    }
  })
}

/** The `task_batch.completed` event. docs/reference/batches.md#event */
export const taskBatchCompleted = (
  userId: UserId,
  payload: TaskBatch,
  now: DateTime.Utc
): EventBody => {
  const id = makeEventId(DateTime.toEpochMillis(now))
  const data = { user_id: userId, payload }
  return toBody({ id, type: "task_batch.completed", created_at: now, data })
}

/** The `webhook.failing` event. docs/reference/webhooks.md#failing-endpoints */
export const webhookFailing = (
  endpoint: {
    readonly id: EndpointId
    readonly userId: UserId
    readonly url: string
    readonly failingSince: DateTime.Utc
  },
  now: DateTime.Utc
): EventBody => {
  const id = makeEventId(DateTime.toEpochMillis(now))
  return toBody({
    id,
    type: "webhook.failing",
    created_at: now,
    data: {
      user_id: endpoint.userId,
      payload: {
        endpoint_id: endpoint.id,
        url: endpoint.url,
        failing_since: endpoint.failingSince
      }
    }
  })
}

/** The `key.expiring` event. docs/reference/webhooks.md#expiring-keys */
export const keyExpiring = (
  key: {
    readonly id: ApiKeyId
    readonly userId: UserId
    readonly name: string
    readonly preview: string
    readonly expiresAt: DateTime.Utc
  },
  now: DateTime.Utc
): EventBody => {
  const id = makeEventId(DateTime.toEpochMillis(now))
  const { expiresAt: expires_at, id: api_key_id, name, preview, userId: user_id } = key
  return toBody({
    id,
    type: "key.expiring",
    created_at: now,
    data: { user_id, payload: { api_key_id, name, preview, expires_at } }
  })
}

/** A synthetic `task.succeeded` whose id starts with `evt_test_`. docs/reference/webhooks.md#test-event */
export const testEvent = (
  subject: TaskSubject,
  payload: TaskResult,
  now: DateTime.Utc
): EventBody => {
  const id = makeTestEventId(DateTime.toEpochMillis(now))
  const data = { vendor: subject.vendor, model_name: subject.model, payload }
  return toBody({ id, type: "task.succeeded", created_at: now, data })
}
