import { DateTime, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { DeliveryId } from "../../../domain/Ids.ts"
import { Deliveries } from "../../../webhooks/Deliveries.ts"
import type { AttemptRow, DeliveryRow } from "../../../webhooks/Deliveries.ts"
import { requireReader, requireUser } from "../../server/access/Authentication.ts"
import { readPage, toPage } from "../Paging.ts"

/** A user's delivery log. */
export const layer = HttpApiBuilder.group(
  Api,
  "webhookDeliveries",
  Effect.fnUntraced(function* (handlers) {
    const deliveries = yield* Deliveries
    return handlers.handleAll({
      listWebhookDeliveries: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, DeliveryId)
        const filter = {
          endpointId: query.endpoint_id,
          taskId: query.task_id,
          status: query.status,
          type: query.type,
          traceId: query.trace_id,
          since: query.since,
          until: query.until
        }
        const page = { before, limit: limit + 1 }
        const { end, rows } = yield* deliveries.search(userId, filter, page)
        return yield* toPage(rows, limit, (row) => row.id, showDelivery, end)
      }),
      getWebhookDelivery: Effect.fnUntraced(function* ({ params, query }) {
        const { attempts, body, row } = yield* deliveries.get(
          yield* requireReader(query),
          params.id
        )
        return { ...showDelivery(row), body, attempts: attempts.map(showAttempt) }
      }),
      redeliverWebhookDeliveries: Effect.fnUntraced(function* ({ payload: { cursor, filter } }) {
        const { count, next } = yield* deliveries.redeliverAll(yield* requireUser, {
          endpointId: filter.endpoint_id,
          statuses: filter.status === undefined ? ["failed", "skipped"] : [filter.status],
          type: filter.type,
          since: filter.since,
          until: filter.until,
          after: cursor
        })
        return { redelivered: count, next_cursor: Option.getOrNull(next) }
      }),
      redeliverWebhookDelivery: Effect.fnUntraced(function* ({ params }) {
        return showDelivery(yield* deliveries.redeliver(yield* requireUser, params.id))
      })
    })
  })
)

export const showDelivery = (row: DeliveryRow) => ({
  id: row.id,
  endpoint_id: row.endpointId,
  webhook_url: row.webhookUrl,
  event_id: row.eventId,
  type: row.eventType,
  task_id: row.taskId,
  status: row.status,
  attempt_count: row.attempts,
  next_attempt_at: row.nextDueAt,
  created_at: row.createdAt,
  updated_at: row.updatedAt
})

const showAttempt = (row: AttemptRow) => ({
  seq: row.seq,
  due_at: row.dueAt,
  started_at: row.startedAt,
  ended_at: row.endedAt,
  lateness_ms: DateTime.toEpochMillis(row.startedAt) - DateTime.toEpochMillis(row.dueAt),
  remote_address: row.remoteAddress,
  status: row.status,
  failure: row.failure,
  detail: row.detail,
  answer: row.answer
})
