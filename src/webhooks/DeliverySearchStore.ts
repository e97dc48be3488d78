import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Option, Schema } from "effect"
import { newestSince, scanList, when } from "../db/ListScan.ts"
import { rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { DeliveryType } from "../domain/Event.ts"
import { deliveryTimeMillis } from "../domain/Ids.ts"
import type { DeliveryId, EndpointId, EventId, TaskId, UserId } from "../domain/Ids.ts"
import type { DeliveryStatus } from "../domain/Webhook.ts"

/** Absent members do not filter. */
export interface DeliveryFilter {
  readonly endpointId?: EndpointId | undefined
  readonly taskId?: TaskId | undefined
  readonly eventId?: EventId | undefined
  readonly status?: DeliveryStatus | undefined
  readonly type?: DeliveryType | undefined
  /** The trace of the request that caused the event. */
  readonly traceId?: string | undefined
  /** Created at this time or later. */
  readonly since?: DateTime.Utc | undefined
  /** Created before this time. */
  readonly until?: DateTime.Utc | undefined
}

export interface DeliveryPage {
  readonly before: Option.Option<DeliveryId>
  readonly limit: number
}

/** The `created_at` that the id contains, so that the planner reads only that day's partition. */
export const createdAt = (id: DeliveryId): Date =>
  new Date(Option.getOrElse(deliveryTimeMillis(id), () => 0))

/** The lowest delivery id possible at this time. */
export const deliveryIdAt = (at: DateTime.Utc): string =>
  `whd_${DateTime.toEpochMillis(at).toString(16).padStart(12, "0")}`

/** Columns of a table or alias named `t`. */
export const deliveryColumns = `
    t.id, t.endpoint_id, t.event_id, t.event_type, t.task_id, t.status, t.attempts, t.next_due_at,
    t.created_at, t.updated_at, t.webhook_url,
    (SELECT e.deleted_at IS NOT NULL FROM webhook_endpoints e WHERE e.id = t.endpoint_id) AS endpoint_deleted`

const TaskTimes = Schema.Struct({ createdAt: Time, updatedAt: Time })

/**
 * The time range of a task's events, with an allowance for clock differences. Passed as constants, so that the planner
 * skips the partitions of other days. Empty if the task was deleted.
 */
export const daysOfTask = (sql: PgClient.PgClient) => (id: TaskId) =>
  sql`SELECT created_at, updated_at FROM tasks WHERE id = ${id}`.pipe(
    rowsOf(TaskTimes),
    Effect.map((rows) =>
      rows.map(({ createdAt, updatedAt }) => ({
        since: DateTime.subtract(createdAt, { hours: 1 }),
        until: DateTime.add(updatedAt, { hours: 1 })
      }))
    ),
    storeFailures
  )

/** Implements `DeliveryLogStore.search`. */
export const searchDeliveries =
  <S extends Schema.Constraint>(sql: PgClient.PgClient, row: S) =>
  (userId: UserId, filter: DeliveryFilter, page: DeliveryPage) =>
    Effect.gen(function* () {
      const now = yield* DateTime.now
      const { endpointId, taskId, until } = filter
      const days = taskId === undefined ? [] : yield* daysOfTask(sql)(taskId)
      const before = Option.filter(page.before, (id) => Option.isSome(deliveryTimeMillis(id)))
      const candidates = (since: DateTime.Utc | undefined) => {
        const conditions = [
          endpointId === undefined
            ? sql`c.user_id = ${userId}`
            : sql`c.endpoint_id = ${endpointId}`,
          ...when(Option.getOrUndefined(before), (id) => sql`c.id < ${id}`),
          ...when(Option.getOrUndefined(before), (id) => sql`c.created_at <= ${createdAt(id)}`),
          ...when(taskId, (id) => sql`c.task_id = ${id}`),
          ...days.flatMap((day) => [
            sql`c.created_at >= ${toDate(day.since)}`,
            sql`c.created_at <= ${toDate(day.until)}`
          ]),
          ...when(since, (at) => sql`c.created_at >= ${toDate(at)}`),
          ...when(since, (at) => sql`c.id >= ${deliveryIdAt(at)}`),
          ...when(until, (at) => sql`c.created_at < ${toDate(at)}`),
          ...when(until, (at) => sql`c.id < ${deliveryIdAt(at)}`)
        ]
        return sql`
          SELECT * FROM deliveries_and_claims c WHERE ${sql.and(conditions)} ORDER BY c.id DESC`
      }
      const first = Math.min(
        DateTime.toEpochMillis(until ?? now),
        ...Option.toArray(Option.flatMap(before, deliveryTimeMillis))
      )
      const newest = DateTime.makeUnsafe(newestSince(first))
      const isShort =
        filter.since !== undefined && DateTime.isGreaterThanOrEqualTo(filter.since, newest)
      return yield* scanList(sql)({
        user: userId,
        row,
        columns: sql.literal(deliveryColumns),
        key: "id",
        candidates: candidates(filter.since),
        // A task has few deliveries, so they need no separate scan of the newest
        ...(taskId === undefined && !isShort ? { newest: candidates(newest) } : {}),
        filters: [
          ...when(endpointId, () => sql`t.user_id = ${userId}`),
          ...when(filter.status, (status) => sql`t.status = ${status}`),
          ...when(filter.type, (type) => sql`t.event_type = ${type}`),
          ...when(filter.eventId, (id) => sql`t.event_id = ${id}`),
          ...when(
            filter.traceId,
            (id) => sql`EXISTS (
              SELECT FROM events e
              WHERE e.id = t.event_id AND e.created_at = t.event_created_at AND e.trace_id = ${id})`
          )
        ],
        limit: page.limit
      })
    })
