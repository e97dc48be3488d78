import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { Micro, rowsOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { TaskStatus } from "../../domain/Task.ts"

/** A job that was submitted, and what its task has charged. */
export const JobRow = Schema.Struct({
  taskId: TaskId,
  model: Schema.String,
  status: TaskStatus,
  captured: Schema.NullOr(Micro),
  handle: Schema.Record(Schema.String, Schema.Json)
})
export type JobRow = typeof JobRow.Type

/** Jobs bought at a provider, to compare with its bill. docs/reference/reconciliation.md */
export class BillStore extends Context.Service<
  BillStore,
  {
    /** Jobs with a handle that were submitted on this day, in UTC, to accounts of the provider. */
    readonly jobs: (
      provider: string,
      day: string
    ) => Effect.Effect<ReadonlyArray<JobRow>, StoreUnavailable>
  }
>()("gateway/tasks/BillStore") {
  static readonly layer = Layer.effect(
    BillStore,
    Effect.map(PgClient.PgClient, (sql) =>
      BillStore.of({
        jobs: (provider, day) =>
          sql`
            SELECT t.id AS task_id, t.model, t.status, t.captured, a.handle
            FROM vendor_attempts a CROSS JOIN LATERAL (
              SELECT id, model, status, captured FROM tasks o
              WHERE o.id = a.task_id AND NOT o.sandbox OFFSET 0
            ) t
            WHERE a.started_at >= ${`${day}T00:00:00Z`}::timestamptz
              AND a.started_at < ${`${day}T00:00:00Z`}::timestamptz + interval '1 day'
              AND split_part(a.account_id, ':', 1) = ${provider} AND a.handle IS NOT NULL
            ORDER BY a.task_id, a.n`.pipe(rowsOf(JobRow), storeFailures)
      })
    )
  )
}
