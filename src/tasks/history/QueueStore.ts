import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

/** The number and lateness of waiting tasks and deliveries, over all processes. */
export const QueueDepths = Schema.Struct({
  tasks: Schema.Int,
  /** Tasks waiting for a slot at the vendor. */
  tasksWaiting: Schema.Int,
  /** Tasks that no process owns. */
  tasksUnowned: Schema.Int,
  /** Tasks whose next step is due and has not begun. */
  tasksDue: Schema.Int,
  /** How late the longest-overdue task is; 0 if none is due. */
  tasksLatenessMillis: Schema.Finite,
  deliveries: Schema.Int,
  deliveriesDue: Schema.Int,
  deliveriesClaimed: Schema.Int,
  /** How late the longest-overdue delivery is; 0 if none is due. */
  latenessMillis: Schema.Finite,
  /** When the store was last found, or declared, to have gone back in time. docs/standbys.md */
  restoredAt: Schema.NullOr(Time),
  /** The newest heartbeat in the store at that time. */
  trustedUntil: Schema.NullOr(Time),
  /** Tasks for which the store may have lost a submit since then. */
  tasksInDoubt: Schema.Int
})
export type QueueDepths = typeof QueueDepths.Type

/** Read-only. The tables contain only unfinished work. */
export class QueueStore extends Context.Service<QueueStore>()("gateway/tasks/QueueStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    depths: (now: DateTime.Utc) =>
      sql`
        SELECT r.*, q.*, m.restored_at, m.trusted_until FROM (
          SELECT count(*)::int AS tasks,
            (count(*) FILTER (WHERE slot_key IS NOT NULL AND NOT slot_held))::int AS tasks_waiting,
            (count(*) FILTER (WHERE owner IS NULL))::int AS tasks_unowned,
            (count(*) FILTER (WHERE in_doubt))::int AS tasks_in_doubt,
            (count(*) FILTER (WHERE owner IS NULL AND ready_at <= ${toDate(now)}))::int AS tasks_due,
            greatest(0, coalesce(floor(1000 * extract(epoch FROM
              ${toDate(now)}::timestamptz - min(ready_at) FILTER (WHERE owner IS NULL))), 0))::float8
              AS tasks_lateness_millis
          FROM (
            -- A step under a vendor's rate is due when its permit is
            SELECT t.*, greatest(t.due_at, l.next_at) AS ready_at
            FROM runs t LEFT JOIN rate_leases l ON l.key = t.queue AND l.spacing IS NOT NULL
          ) t
        ) r CROSS JOIN (
          SELECT count(*)::int AS deliveries,
            (count(*) FILTER (WHERE owner IS NULL AND due_at <= ${toDate(now)}))::int AS deliveries_due,
            (count(*) FILTER (WHERE owner IS NOT NULL))::int AS deliveries_claimed,
            greatest(0, coalesce(floor(1000 * extract(epoch FROM
              ${toDate(now)}::timestamptz - min(due_at) FILTER (WHERE owner IS NULL))), 0))::float8 AS lateness_millis
          FROM delivery_queue
        ) q LEFT JOIN LATERAL (
          SELECT * FROM store_marks ORDER BY restored_at DESC LIMIT 1
        ) m ON true`.pipe(rowOf(QueueDepths), storeFailures)
  }))
}) {
  static readonly layer = Layer.effect(QueueStore, QueueStore.make)
}
