import { PgClient } from "@effect/sql-pg"
import { Array, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { audited, named } from "../db/Audited.ts"
import { scanList, when } from "../db/ListScan.ts"
import type { ScannedPage } from "../db/ListScan.ts"
import { Bytes, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { EventType } from "../domain/Event.ts"
import { DeliveryId, deliveryTimeMillis, EndpointId, EventId, TaskId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { DeliveryStatus, FailureClass } from "../domain/Webhook.ts"

/** One delivery of the log. */
export class DeliveryRow extends Schema.Class<DeliveryRow>("DeliveryRow")({
  id: DeliveryId,
  endpointId: EndpointId,
  eventId: EventId,
  eventType: EventType,
  taskId: Schema.NullOr(TaskId),
  status: DeliveryStatus,
  /** Attempts that have ended, without lost ones. */
  attempts: Schema.Int,
  /** Due time of the next attempt, while the delivery waits for one. */
  nextDueAt: Schema.NullOr(Time),
  endpointDeleted: Schema.Boolean,
  createdAt: Time,
  updatedAt: Time
}) {}

/** One attempt of the log. */
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

/** A filter that is absent matches all deliveries. */
export interface DeliveryFilter {
  readonly endpointId?: EndpointId | undefined
  readonly taskId?: TaskId | undefined
  readonly status?: DeliveryStatus | undefined
  readonly type?: EventType | undefined
  /** Of the request that caused the event. */
  readonly traceId?: string | undefined
  /** Created at or after. */
  readonly since?: DateTime.Utc | undefined
  /** Created before. */
  readonly until?: DateTime.Utc | undefined
}

/** Which deliveries are sent again; absent members match all. */
export interface RedeliveryFilter {
  readonly endpointId: EndpointId | undefined
  readonly statuses: ReadonlyArray<DeliveryStatus>
  readonly type: EventType | undefined
  /** Created at or after. */
  readonly since: DateTime.Utc | undefined
  /** Created before. */
  readonly until: DateTime.Utc | undefined
  readonly after: DeliveryId | undefined
}

export interface DeliveryPage {
  readonly before: Option.Option<DeliveryId>
  readonly limit: number
}

/** One attempt of one delivery; without an attempt its columns are null. */
const TaskDeliveryRow = Schema.Struct({
  id: DeliveryId,
  endpointId: EndpointId,
  eventId: EventId,
  eventType: Schema.String,
  status: DeliveryStatus,
  createdAt: Time,
  updatedAt: Time,
  traceId: Schema.NullOr(Schema.String),
  seq: Schema.NullOr(Schema.Int),
  dueAt: Schema.NullOr(Time),
  startedAt: Schema.NullOr(Time),
  endedAt: Schema.NullOr(Time),
  httpStatus: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass)
})
export type TaskDeliveryRow = typeof TaskDeliveryRow.Type

/** The delivery log, and redelivery. docs/reference/webhooks.md#delivery-log */
export class DeliveryLogStore extends Context.Service<
  DeliveryLogStore,
  {
    /** Newest first. */
    readonly search: (
      userId: UserId,
      filter: DeliveryFilter,
      page: DeliveryPage
    ) => Effect.Effect<ScannedPage<DeliveryRow>, StoreUnavailable>
    readonly find: (
      userId: UserId,
      id: DeliveryId
    ) => Effect.Effect<Option.Option<DeliveryRow>, StoreUnavailable>
    /** Oldest first. */
    readonly attempts: (
      id: DeliveryId
    ) => Effect.Effect<ReadonlyArray<AttemptRow>, StoreUnavailable>
    /** All deliveries of a task's events. */
    readonly ofTask: (id: TaskId) => Effect.Effect<ReadonlyArray<TaskDeliveryRow>, StoreUnavailable>
    /** The bytes that are sent. */
    readonly body: (id: DeliveryId) => Effect.Effect<Option.Option<Uint8Array>, StoreUnavailable>
    /** Queues deliveries again, due now, except running ones; returns the endpoints to notify. */
    readonly requeue: (
      ids: ReadonlyArray<DeliveryId>,
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<EndpointId>, StoreUnavailable>
    /** Deliveries to endpoints that are there, oldest first. */
    readonly matching: (
      userId: UserId,
      filter: RedeliveryFilter,
      limit: number
    ) => Effect.Effect<ReadonlyArray<DeliveryId>, StoreUnavailable>
    /** Failed and skipped deliveries of an endpoint, created since then, oldest first. */
    readonly recoverable: (
      userId: UserId,
      endpointId: EndpointId,
      since: DateTime.Utc,
      limit: number
    ) => Effect.Effect<ReadonlyArray<DeliveryId>, StoreUnavailable>
  }
>()("gateway/webhooks/DeliveryLogStore") {
  static readonly layer = Layer.effect(
    DeliveryLogStore,
    Effect.map(PgClient.PgClient, (sql) =>
      DeliveryLogStore.of({ ...reads(sql), ...redelivery(sql), matching: matching(sql) })
    )
  )
}

/** The `created_at` that the id contains, so that the planner reads that day's partition only. */
const createdAt = (id: DeliveryId): Date =>
  new Date(Option.getOrElse(deliveryTimeMillis(id), () => 0))

/** The lowest delivery id of this time. */
const deliveryIdAt = (at: DateTime.Utc): string =>
  `whd_${DateTime.toEpochMillis(at).toString(16).padStart(12, "0")}`

/** Of a table named `t`. */
const deliveryColumns = `
    t.id, t.endpoint_id, t.event_id, t.event_type, t.task_id, t.status, t.attempts, t.next_due_at,
    t.created_at, t.updated_at,
    (SELECT e.deleted_at IS NOT NULL FROM webhook_endpoints e WHERE e.id = t.endpoint_id) AS endpoint_deleted`

function search(sql: PgClient.PgClient) {
  return (userId: UserId, filter: DeliveryFilter, page: DeliveryPage) => {
    const { endpointId, since, taskId, until } = filter
    const before = Option.filter(page.before, (id) => Option.isSome(deliveryTimeMillis(id)))
    const candidates = [
      endpointId === undefined ? sql`c.user_id = ${userId}` : sql`c.endpoint_id = ${endpointId}`,
      ...when(Option.getOrUndefined(before), (id) => sql`c.id < ${id}`),
      ...when(Option.getOrUndefined(before), (id) => sql`c.created_at <= ${createdAt(id)}`),
      ...when(taskId, (id) => sql`c.task_id = ${id}`),
      ...when(since, (at) => sql`c.created_at >= ${toDate(at)}`),
      ...when(since, (at) => sql`c.id >= ${deliveryIdAt(at)}`),
      ...when(until, (at) => sql`c.created_at < ${toDate(at)}`),
      ...when(until, (at) => sql`c.id < ${deliveryIdAt(at)}`)
    ]
    return scanList(sql)({
      user: userId,
      row: DeliveryRow,
      columns: sql.literal(deliveryColumns),
      key: "id",
      candidates: sql`
          SELECT * FROM deliveries_and_claims c WHERE ${sql.and(candidates)} ORDER BY c.id DESC`,
      filters: [
        ...when(endpointId, () => sql`t.user_id = ${userId}`),
        ...when(filter.status, (status) => sql`t.status = ${status}`),
        ...when(filter.type, (type) => sql`t.event_type = ${type}`),
        ...when(
          filter.traceId,
          (id) => sql`EXISTS (
              SELECT FROM events e
              WHERE e.id = t.event_id AND e.created_at = t.event_created_at AND e.trace_id = ${id})`
        )
      ],
      limit: page.limit
    })
  }
}

function reads(sql: PgClient.PgClient) {
  const Body = Schema.Struct({ body: Bytes })
  return {
    search: search(sql),
    find: (userId: UserId, id: DeliveryId) =>
      sql`
        SELECT ${sql.literal(deliveryColumns)} FROM deliveries_and_claims t
        WHERE t.id = ${id} AND t.created_at = ${createdAt(id)} AND t.user_id = ${userId}`.pipe(
        rowsOf(DeliveryRow),
        Effect.map(Array.head),
        storeFailures
      ),
    attempts: (id: DeliveryId) =>
      sql`
        SELECT seq, due_at, started_at, ended_at, status, failure, detail, answer, remote_address
        FROM attempts_and_claims WHERE delivery_id = ${id} AND started_at >= ${createdAt(id)}
        ORDER BY seq`.pipe(rowsOf(AttemptRow), storeFailures),
    ofTask: (id: TaskId) =>
      sql`
        SELECT d.id, d.endpoint_id, d.event_id, d.event_type, d.status, d.created_at, d.updated_at,
          e.trace_id, a.seq, a.due_at, a.started_at, a.ended_at, a.status AS http_status, a.failure
        FROM deliveries_and_claims d
        LEFT JOIN events e ON e.id = d.event_id AND e.created_at = d.event_created_at
        LEFT JOIN attempts_and_claims a ON a.delivery_id = d.id
        WHERE d.task_id = ${id}
        ORDER BY d.created_at, d.id, a.seq`.pipe(rowsOf(TaskDeliveryRow), storeFailures),
    body: (id: DeliveryId) =>
      sql`
        SELECT e.body FROM deliveries d
        JOIN events e ON e.id = d.event_id AND e.created_at = d.event_created_at
        WHERE d.id = ${id} AND d.created_at = ${createdAt(id)}`.pipe(
        rowsOf(Body),
        Effect.map((rows) => Option.map(Array.head(rows), (row) => row.body)),
        storeFailures
      )
  }
}

function redelivery(sql: PgClient.PgClient) {
  const Requeued = Schema.Struct({ endpoints: Schema.Array(EndpointId) })
  const Id = Schema.Struct({ id: DeliveryId })
  return {
    requeue: (ids: ReadonlyArray<DeliveryId>, now: DateTime.Utc) =>
      sql`SELECT * FROM delivery_requeue(${ids}::text[], ${toDate(now)})`.pipe(
        rowsOf(Requeued),
        Effect.map((rows) => rows[0]?.endpoints ?? []),
        audited(sql, named),
        storeFailures
      ),
    recoverable: (userId: UserId, endpointId: EndpointId, since: DateTime.Utc, limit: number) =>
      sql`
        SELECT id FROM deliveries
        WHERE endpoint_id = ${endpointId} AND user_id = ${userId} AND created_at >= ${toDate(since)}
          AND status IN ('failed', 'skipped')
        ORDER BY id LIMIT ${limit}`.pipe(
        rowsOf(Id),
        Effect.map(Array.map((row) => row.id)),
        storeFailures
      )
  }
}

function matching(sql: PgClient.PgClient) {
  const Id = Schema.Struct({ id: DeliveryId })
  return (userId: UserId, filter: RedeliveryFilter, limit: number) => {
    const { after, endpointId, since, type, until } = filter
    return sql`
      SELECT d.id FROM deliveries d
      JOIN webhook_endpoints e ON e.id = d.endpoint_id AND e.deleted_at IS NULL
      WHERE ${sql.and([
        sql`d.user_id = ${userId} AND d.status = ANY (${filter.statuses}::text[])`,
        ...(after === undefined
          ? []
          : [sql`d.id > ${after} AND d.created_at >= ${createdAt(after)}`]),
        ...(endpointId === undefined ? [] : [sql`d.endpoint_id = ${endpointId}`]),
        ...(type === undefined ? [] : [sql`d.event_type = ${type}`]),
        ...(since === undefined ? [] : [sql`d.created_at >= ${toDate(since)}`]),
        ...(until === undefined ? [] : [sql`d.created_at < ${toDate(until)}`])
      ])}
      ORDER BY d.id LIMIT ${limit}`.pipe(
      rowsOf(Id),
      Effect.map(Array.map((row) => row.id)),
      storeFailures
    )
  }
}
