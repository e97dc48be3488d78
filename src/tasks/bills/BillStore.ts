import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { Micro, rowOf, rowsOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskId } from "../../domain/Ids.ts"
import { TaskStatus } from "../../domain/task/Task.ts"

/** A submitted job and the charge of its task. */
export const JobRow = Schema.Struct({
  taskId: TaskId,
  model: Schema.String,
  status: TaskStatus,
  captured: Schema.NullOr(Micro),
  handle: Schema.Record(Schema.String, Schema.Json)
})
export type JobRow = typeof JobRow.Type

/** A metered call whose vendor request id is known. */
export const CallRow = Schema.Struct({
  callId: Schema.String,
  requestId: Schema.String,
  model: Schema.String,
  captured: Micro
})
export type CallRow = typeof CallRow.Type

const SumRow = Schema.Struct({ count: Schema.Int, charged: Micro })

/** Jobs and calls bought at a provider, to compare with its bill. docs/reference/reconciliation.md */
export class BillStore extends Context.Service<BillStore>()("gateway/tasks/BillStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    /** Jobs with a handle that were submitted to the provider's accounts on this UTC day. */
    jobs: (provider: string, day: string) =>
      sql`
        SELECT t.id AS task_id, t.model, t.status, t.captured, a.handle
        FROM vendor_attempts a CROSS JOIN LATERAL (
          SELECT id, coalesce(candidates -> candidate ->> 'model', model) AS model, status, captured FROM tasks o
          WHERE o.id = a.task_id AND NOT o.sandbox OFFSET 0
        ) t
        WHERE a.started_at >= ${`${day}T00:00:00Z`}::timestamptz
          AND a.started_at < ${`${day}T00:00:00Z`}::timestamptz + interval '1 day'
          AND split_part(split_part(a.account_id, '@', 2), ':', 1) = ${provider} AND a.handle IS NOT NULL
        ORDER BY a.task_id, a.n`.pipe(rowsOf(JobRow), storeFailures),
    ...calls(sql)
  }))
}) {
  static readonly layer = Layer.effect(BillStore, BillStore.make)
}

/** Reads each daily partition once and hashes the ids. */
function calls(sql: PgClient.PgClient) {
  const ofDay = (provider: string, day: string) => sql`
    c.created_at >= ${`${day}T00:00:00Z`}::timestamptz
    AND c.created_at < ${`${day}T00:00:00Z`}::timestamptz + interval '1 day'
    AND NOT c.sandbox AND c.request_id IS NOT NULL AND split_part(c.account_id, ':', 1) = ${provider}`
  const columns = sql.literal(
    "c.id AS call_id, c.request_id, coalesce(c.model, c.route) AS model, c.captured"
  )
  return {
    /** Calls that began on this day and have one of these request ids. */
    calls: (provider: string, day: string, ids: ReadonlyArray<string>) =>
      sql`
        SELECT ${columns} FROM calls c JOIN (SELECT DISTINCT unnest(${ids}::text[]) AS id) i ON i.id = c.request_id
        WHERE ${ofDay(provider, day)}`.pipe(rowsOf(CallRow), storeFailures),
    /** Charged calls that began on this day and have none of these request ids: a sample, and the totals over all. */
    otherCalls: Effect.fnUntraced(
      function* (provider: string, day: string, ids: ReadonlyArray<string>, limit: number) {
        const others = sql`
          FROM calls c LEFT JOIN (SELECT DISTINCT unnest(${ids}::text[]) AS id) i ON i.id = c.request_id
          WHERE ${ofDay(provider, day)} AND c.captured > 0 AND i.id IS NULL`
        const sums = yield* sql`
          SELECT count(*)::int AS count, coalesce(sum(c.captured), 0)::bigint AS charged ${others}`.pipe(
          rowOf(SumRow)
        )
        const rows = yield* sql`SELECT ${columns} ${others} ORDER BY c.id LIMIT ${limit}`.pipe(
          rowsOf(CallRow)
        )
        return { ...sums, rows }
      },
      (effect) => storeFailures(effect)
    )
  }
}
