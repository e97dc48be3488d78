import { PgClient } from "@effect/sql-pg"
import { Array, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { audited, named } from "../db/Audited.ts"
import { Bytes, rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { DeliveryType } from "../domain/Event.ts"
import { DeliveryId, EndpointId, EventId, TaskId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import { listScanRowsMax } from "../domain/limits/Limits.ts"
import { DeliveryStatus, FailureClass } from "../domain/Webhook.ts"
import {
  createdAt,
  daysOfTask,
  deliveryColumns,
  deliveryIdAt,
  searchDeliveries
} from "./DeliverySearchStore.ts"

export class DeliveryRow extends Schema.Class<DeliveryRow>("DeliveryRow")({
  id: DeliveryId,
  endpointId: EndpointId,
  eventId: EventId,
  eventType: DeliveryType,
  taskId: Schema.NullOr(TaskId),
  status: DeliveryStatus,
  /** The number of attempts that have ended, except lost ones. */
  attempts: Schema.Int,
  /** When the next attempt is due, while the delivery waits for one. */
  nextDueAt: Schema.NullOr(Time),
  endpointDeleted: Schema.Boolean,
  /** The URL of the task's own webhook. Null: the endpoint's URL. */
  webhookUrl: Schema.NullOr(Schema.String),
  createdAt: Time,
  updatedAt: Time
}) {}

export class AttemptRow extends Schema.Class<AttemptRow>("AttemptRow")({
  seq: Schema.Int,
  dueAt: Time,
  startedAt: Time,
  endedAt: Schema.NullOr(Time),
  status: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass),
  detail: Schema.NullOr(Schema.String),
  answer: Schema.NullOr(Schema.String),
  remoteAddress: Schema.NullOr(Schema.String)
}) {}

/** Which deliveries to resend. Absent members do not filter. */
export interface RedeliveryFilter {
  readonly endpointId: EndpointId | undefined
  readonly statuses: ReadonlyArray<DeliveryStatus>
  readonly type: DeliveryType | undefined
  /** Created at this time or later. */
  readonly since: DateTime.Utc | undefined
  /** Created before this time. */
  readonly until: DateTime.Utc | undefined
  readonly after: DeliveryId | undefined
}

const MatchingDeliveries = Schema.Struct({
  ids: Schema.Array(DeliveryId),
  /** The last delivery that was scanned, if more may follow. */
  scanEnd: Schema.NullOr(DeliveryId)
})
export type MatchingDeliveries = typeof MatchingDeliveries.Type

const Requeued = Schema.Struct({ endpoints: Schema.Array(EndpointId), queued: Schema.Int })
type Requeued = typeof Requeued.Type

const OfTaskRow = Schema.Struct({
  id: DeliveryId,
  endpointId: EndpointId,
  webhookUrl: Schema.NullOr(Schema.String),
  eventId: EventId,
  eventType: Schema.String,
  status: DeliveryStatus,
  createdAt: Time,
  updatedAt: Time,
  traceId: Schema.NullOr(Schema.String)
})

const OfDeliveryRow = Schema.Struct({
  deliveryId: DeliveryId,
  seq: Schema.Int,
  dueAt: Time,
  startedAt: Time,
  endedAt: Schema.NullOr(Time),
  httpStatus: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass)
})

/** A delivery with one of its attempts. The attempt's members are null if there has been no attempt. */
export type TaskDeliveryRow = typeof OfTaskRow.Type & {
  readonly [Key in Exclude<keyof typeof OfDeliveryRow.Type, "deliveryId">]:
    | (typeof OfDeliveryRow.Type)[Key]
    | null
}

const noAttempt = {
  seq: null,
  dueAt: null,
  startedAt: null,
  endedAt: null,
  httpStatus: null,
  failure: null
}

/** The delivery log, and redelivery. docs/reference/webhooks.md#delivery-log */
export class DeliveryLogStore extends Context.Service<DeliveryLogStore>()(
  "gateway/webhooks/DeliveryLogStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      ...reads(sql),
      ...redelivery(sql),
      matching: matching(sql)
    }))
  }
) {
  static readonly layer = Layer.effect(DeliveryLogStore, DeliveryLogStore.make)
}

function reads(sql: PgClient.PgClient) {
  const Body = Schema.Struct({ body: Bytes })
  return {
    /** Newest first. */
    search: searchDeliveries(sql, DeliveryRow),
    find: (userId: UserId, id: DeliveryId) =>
      sql`
        SELECT ${sql.literal(deliveryColumns)} FROM deliveries_and_claims t
        WHERE t.id = ${id} AND t.created_at = ${createdAt(id)} AND t.user_id = ${userId}`.pipe(
        rowsOf(DeliveryRow),
        Effect.map(Array.head),
        storeFailures
      ),
    /** Oldest first. */
    attempts: (id: DeliveryId) =>
      sql`
        SELECT seq, due_at, started_at, ended_at, status, failure, detail, answer, remote_address
        FROM attempts_and_claims
        WHERE delivery_id = ${id} AND started_at >= ${createdAt(id)}::timestamptz - interval '1 hour' AND started_at <= (
          SELECT updated_at + interval '1 hour' FROM deliveries_and_claims
          WHERE id = ${id} AND created_at = ${createdAt(id)})
        ORDER BY seq`.pipe(rowsOf(AttemptRow), storeFailures),
    /** All deliveries of a task's events. */
    ofTask: ofTask(sql),
    /** The request body of a delivery. */
    body: (id: DeliveryId) =>
      sql`
        SELECT event_body(e.body, e.openai, d.event_type) AS body FROM deliveries d
        JOIN events e ON e.id = d.event_id AND e.created_at = d.event_created_at
        WHERE d.id = ${id} AND d.created_at = ${createdAt(id)}`.pipe(
        rowsOf(Body),
        Effect.map((rows) => Option.map(Array.head(rows), (row) => row.body)),
        storeFailures
      )
  }
}

/** The id gives each row's day, so each lookup reads one partition, whatever the planner's statistics say. */
function ofTask(sql: PgClient.PgClient) {
  return Effect.fnUntraced(function* (id: TaskId) {
    const [days] = yield* daysOfTask(sql)(id)
    if (days === undefined) return []
    const [since, until] = [toDate(days.since), toDate(days.until)]
    const rows = yield* sql`
      SELECT d.id, d.endpoint_id, d.webhook_url, d.event_id, d.event_type, d.status, d.created_at, d.updated_at, e.trace_id
      FROM (
        SELECT * FROM deliveries_and_claims c
        WHERE c.task_id = ${id} AND c.created_at >= ${since} AND c.created_at <= ${until}
        OFFSET 0
      ) d
      LEFT JOIN LATERAL (
        SELECT trace_id FROM events
        WHERE id = d.event_id AND created_at = d.event_created_at AND created_at >= ${since} AND created_at <= ${until}
        OFFSET 0
      ) e ON true
      ORDER BY d.created_at, d.id`.pipe(rowsOf(OfTaskRow))
    // A delivery is updated with each of its attempts
    const last = Math.max(...rows.map(({ updatedAt }) => DateTime.toEpochMillis(updatedAt)))
    if (rows.length === 0) return []
    const attempts = yield* sql`
      SELECT delivery_id, seq, due_at, started_at, ended_at, status AS http_status, failure
      FROM attempts_and_claims
      WHERE delivery_id = ANY (${rows.map((row) => row.id)}::text[])
        AND started_at >= ${since} AND started_at <= ${new Date(last + hourMillis)}
      ORDER BY seq`.pipe(rowsOf(OfDeliveryRow))
    const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId)
    return rows.flatMap((row): ReadonlyArray<TaskDeliveryRow> =>
      (byDelivery.get(row.id) ?? [noAttempt]).map((attempt) => Object.assign({}, attempt, row))
    )
  }, storeFailures)
}

/** The clocks of processes may differ by this much. */
const hourMillis = 3_600_000

function redelivery(sql: PgClient.PgClient) {
  return {
    /**
     * Queues deliveries again, due now, except those whose attempt is running or whose event is gone. Returns how many,
     * and the endpoints to notify.
     */
    requeue: (ids: ReadonlyArray<DeliveryId>, now: DateTime.Utc) =>
      sql`SELECT * FROM delivery_requeue(${ids}::text[], ${toDate(now)})`.pipe(
        rowOf(Requeued),
        audited(sql, named),
        storeFailures
      )
  }
}

/** Deliveries to existing endpoints, oldest first. Scans at most `listScanRowsMax` deliveries, however few match. */
function matching(sql: PgClient.PgClient) {
  return (userId: UserId, filter: RedeliveryFilter, limit: number) => {
    const { after, endpointId, since, statuses, type, until } = filter
    const sinceId = since === undefined ? lowestId : deliveryIdAt(since)
    const isAfter = after !== undefined && after > sinceId
    const from = isAfter ? createdAt(after) : since && toDate(since)
    return sql`
      SELECT ids, scan_end FROM deliveries_matching(
        ${userId}, ${endpointId ?? null}::text, ${statuses}::text[], ${type ?? null}::text,
        ${isAfter ? after : sinceId}, ${until === undefined ? highestId : deliveryIdAt(until)},
        coalesce(${from ?? null}::timestamptz, '-infinity'),
        coalesce(${until === undefined ? null : toDate(until)}::timestamptz, 'infinity'),
        ${listScanRowsMax}::int, ${limit}::int)`.pipe(rowOf(MatchingDeliveries), storeFailures)
  }
}

/** Less than and greater than every delivery id. */
const lowestId = "whd_"
const highestId = "whd_g"
