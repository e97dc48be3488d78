import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { Bytes, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { EventType } from "../domain/Event.ts"
import { EventId, TaskId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

/** An event with the bytes that its deliveries send. */
export class EventRow extends Schema.Class<EventRow>("EventRow")({
  id: EventId,
  type: EventType,
  createdAt: Time,
  taskId: Schema.NullOr(TaskId),
  body: Bytes
}) {}

export interface EventFilter {
  readonly types: ReadonlyArray<EventType>
  /** Created at or after. */
  readonly since: DateTime.Utc
  /** Not these, which the caller has. */
  readonly except: ReadonlyArray<EventId>
  /** Of so many tasks, the newest. */
  readonly tasks: number
}

/** Events, whether or not an endpoint subscribes to them. Read only. */
export class EventLogStore extends Context.Service<
  EventLogStore,
  {
    /** The events of a user's newest tasks, and the last balance alert, oldest first. */
    readonly newest: (
      userId: UserId,
      filter: EventFilter
    ) => Effect.Effect<ReadonlyArray<EventRow>, StoreUnavailable>
  }
>()("gateway/webhooks/EventLogStore") {
  static readonly layer = Layer.effect(
    EventLogStore,
    Effect.map(PgClient.PgClient, (sql) => EventLogStore.of({ newest: newest(sql) }))
  )
}

/**
 * Events have no index by user, which every create would pay for. The tasks and the wallet of the user say when
 * their events were made; with the time an event is found by its key, in the partition of its day. ADR 0220.
 */
function newest(sql: PgClient.PgClient) {
  return (userId: UserId, { except, since, tasks, types }: EventFilter) =>
    sql`
      WITH recent AS MATERIALIZED (
        SELECT t.id, t.status, t.created_at, t.updated_at FROM tasks t
        WHERE t.user_id = ${userId} ORDER BY t.id DESC LIMIT ${tasks}
      ), made AS MATERIALIZED (
        SELECT id AS task, created_at AS at FROM recent
        UNION ALL SELECT id, updated_at FROM recent WHERE status IN ('completed', 'failed')
        UNION ALL SELECT NULL, last_alert_at FROM wallets WHERE user_id = ${userId}
      )
      SELECT e.id, e.type, e.created_at, e.task_id, e.body FROM made m
      CROSS JOIN LATERAL (
        SELECT v.* FROM events v
        WHERE v.created_at = m.at
          AND v.id >= 'evt_' || lpad(to_hex(floor(extract(epoch from m.at) * 1000)::bigint), 12, '0')
          AND v.id < 'evt_' || lpad(to_hex(floor(extract(epoch from m.at) * 1000)::bigint + 1), 12, '0')
          AND v.user_id = ${userId} AND v.task_id IS NOT DISTINCT FROM m.task
        OFFSET 0
      ) e
      WHERE m.at >= ${toDate(since)} AND e.type = ANY (${types}::text[])
        AND e.id <> ALL (${except}::text[])
      ORDER BY e.created_at, e.id`.pipe(rowsOf(EventRow), storeFailures)
}
