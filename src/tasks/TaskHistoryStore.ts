import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema, Struct } from "effect"
import { rowsOf, Time } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { taskColumns, TaskRow } from "../db/TaskRow.ts"
import type { TaskId, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { TaskStatus } from "../domain/Task.ts"

/** With the hash of the catalog that it was accepted with. */
const withCatalog = Struct.assign({ catalog: Schema.NullOr(Schema.String) })

const catalogHash = "(SELECT k.hash FROM catalogs k WHERE k.id = t.catalog_id) AS catalog"

/** A task as its owner reads it later. */
export const PastTask = TaskRow.mapFields(withCatalog).annotate({ identifier: "PastTask" })
export type PastTask = typeof PastTask.Type

/** The same in a list: without its body. */
export const TaskSummary = PastTask.mapFields(Struct.omit(["body"])).annotate({
  identifier: "TaskSummary"
})
export type TaskSummary = typeof TaskSummary.Type

/** A filter that is `None` matches all tasks. */
export interface TaskFilter {
  readonly status: Option.Option<TaskStatus>
  readonly model: Option.Option<string>
  readonly vendor: Option.Option<string>
  readonly before: Option.Option<TaskId>
  readonly limit: number
}

/** One paid submit, without the vendor's handle. */
export const AttemptRow = Schema.Struct({
  n: Schema.Int,
  vendor: Schema.String,
  accountId: Schema.String,
  state: Schema.Literals(["submitting", "submitted", "refused", "ambiguous"]),
  /** Without the vendor's message, which is for the operator only. */
  failureClass: Schema.NullOr(Schema.String),
  startedAt: Time,
  answeredAt: Schema.NullOr(Time)
})
export type AttemptRow = typeof AttemptRow.Type

/** Tasks and their vendor attempts as the management API shows them. Read only. */
export class TaskHistoryStore extends Context.Service<
  TaskHistoryStore,
  {
    readonly list: (
      userId: UserId,
      filter: TaskFilter
    ) => Effect.Effect<ReadonlyArray<TaskSummary>, StoreUnavailable>
    readonly find: (
      userId: UserId,
      id: TaskId
    ) => Effect.Effect<Option.Option<PastTask>, StoreUnavailable>
    /** Oldest first. */
    readonly attempts: (id: TaskId) => Effect.Effect<ReadonlyArray<AttemptRow>, StoreUnavailable>
  }
>()("gateway/tasks/TaskHistoryStore") {
  static readonly layer = Layer.effect(
    TaskHistoryStore,
    Effect.map(PgClient.PgClient, (sql) =>
      TaskHistoryStore.of({
        list: list(sql),
        find: (userId, id) =>
          sql`
            SELECT t.*, ${sql.literal(catalogHash)} FROM tasks t
            WHERE t.id = ${id} AND t.user_id = ${userId}`.pipe(
            rowsOf(PastTask),
            Effect.map(Array.head),
            storeFailures
          ),
        attempts: (id) =>
          sql`
            SELECT n, vendor, account_id, state, split_part(failure, ':', 1) AS failure_class,
              started_at, answered_at
            FROM vendor_attempts WHERE task_id = ${id} ORDER BY n`.pipe(
            rowsOf(AttemptRow),
            storeFailures
          )
      })
    )
  )
}

function list(sql: PgClient.PgClient) {
  return (userId: UserId, filter: TaskFilter) => {
    const status = Option.getOrNull(filter.status)
    const model = Option.getOrNull(filter.model)
    const vendor = Option.getOrNull(filter.vendor)
    const before = Option.getOrNull(filter.before)
    return sql`
      SELECT ${sql.literal(taskColumns)}, t.trace_id, ${sql.literal(catalogHash)} FROM tasks t
      WHERE t.user_id = ${userId}
        AND (${status}::text IS NULL OR t.status = ${status}::text)
        AND (${model}::text IS NULL OR t.model = ${model}::text)
        AND (${vendor}::text IS NULL OR t.vendor = ${vendor}::text)
        AND (${before}::uuid IS NULL OR t.id < ${before}::uuid)
      ORDER BY t.id DESC LIMIT ${filter.limit}`.pipe(rowsOf(TaskSummary), storeFailures)
  }
}
