import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { Option } from "effect"
import { when } from "../../db/ListScan.ts"
import { Micro, rowsOf, Time } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { taskColumns, TaskView } from "../../db/TaskRow.ts"
import { TaskBatchId } from "../../domain/Ids.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { batchTasksMax } from "../../domain/ShapeLimits.ts"
import type { TaskBatch } from "../../domain/TaskBatch.ts"
import { makeAcceptBatch } from "../creation/TaskAcceptStore.ts"
import type { BatchOutcome } from "../creation/TaskAcceptStore.ts"
import { catalogHash, TaskSummary } from "../history/TaskHistoryStore.ts"
import type { Acceptance } from "../TaskStore.ts"

/** Tasks that one request created. docs/reference/batches.md */
export class TaskBatchStore extends Context.Service<
  TaskBatchStore,
  {
    /** Accepts all tasks or none; the first one has the idempotency record. */
    readonly accept: (
      id: TaskBatchId,
      acceptances: ReadonlyArray<Acceptance>
    ) => Effect.Effect<BatchOutcome, StoreUnavailable>
    readonly find: (
      userId: UserId,
      id: TaskBatchId
    ) => Effect.Effect<Option.Option<TaskBatch>, StoreUnavailable>
    /** Newest first. */
    readonly list: (
      userId: UserId,
      page: { readonly before: TaskBatchId | undefined; readonly limit: number }
    ) => Effect.Effect<ReadonlyArray<TaskBatch>, StoreUnavailable>
    /** In the order of the request. */
    readonly tasks: (
      id: TaskBatchId,
      page: { readonly after: TaskId | undefined; readonly limit: number }
    ) => Effect.Effect<ReadonlyArray<TaskSummary>, StoreUnavailable>
    readonly unfinished: (
      id: TaskBatchId
    ) => Effect.Effect<ReadonlyArray<TaskView>, StoreUnavailable>
  }
>()("gateway/tasks/TaskBatchStore") {
  static readonly layer = Layer.effect(
    TaskBatchStore,
    Effect.map(PgClient.PgClient, (sql) =>
      TaskBatchStore.of({
        accept: makeAcceptBatch(sql),
        find: (userId, id) => storeFailures(findBatch(sql, userId, id)),
        list: (userId, { before, limit }) =>
          batchesOf(
            sql,
            sql`
              SELECT * FROM task_batches b
              WHERE ${sql.and([sql`b.user_id = ${userId}`, ...when(before, (it) => sql`b.id < ${it}`)])}
              ORDER BY b.id DESC LIMIT ${limit}`
          ).pipe(storeFailures),
        tasks: (id, { after, limit }) =>
          sql`
            SELECT ${sql.literal(`${taskColumns}, t.trace_id, ${catalogHash}`)} FROM tasks t
            WHERE ${sql.and([sql`t.batch_id = ${id}`, ...when(after, (it) => sql`t.id > ${it}`)])}
            ORDER BY t.id LIMIT ${limit}`.pipe(rowsOf(TaskSummary), storeFailures),
        unfinished: (id) =>
          sql`
            SELECT ${sql.literal(taskColumns)} FROM tasks t
            WHERE t.batch_id = ${id} AND t.status IN ('pending', 'processing')
            ORDER BY t.id LIMIT ${batchTasksMax}`.pipe(rowsOf(TaskView), storeFailures)
      })
    )
  )
}

/** The batch as it is within the transaction. */
export const findBatch = (sql: PgClient.PgClient, userId: UserId, id: TaskBatchId) =>
  Effect.map(
    batchesOf(sql, sql`SELECT * FROM task_batches b WHERE b.id = ${id} AND b.user_id = ${userId}`),
    Array.head
  )

const Row = Schema.Struct({
  id: TaskBatchId,
  total: Schema.Int,
  open: Schema.Int,
  pending: Schema.Int,
  processing: Schema.Int,
  completed: Schema.Int,
  failed: Schema.Int,
  held: Micro,
  captured: Micro,
  released: Micro,
  createdAt: Time,
  endedAt: Schema.NullOr(Time)
})

/** Sums over the tasks of each batch, of which there are a thousand at most. */
const batchesOf = (sql: PgClient.PgClient, batches: ReturnType<PgClient.PgClient["unsafe"]>) =>
  sql`
    SELECT b.id, b.tasks AS total, b.open, b.created_at, b.ended_at, s.*
    FROM (${batches}) b CROSS JOIN LATERAL (
      SELECT (count(*) FILTER (WHERE t.status = 'pending'))::int AS pending,
        (count(*) FILTER (WHERE t.status = 'processing'))::int AS processing,
        (count(*) FILTER (WHERE t.status = 'completed'))::int AS completed,
        (count(*) FILTER (WHERE t.status = 'failed'))::int AS failed,
        coalesce(sum(t.price) FILTER (WHERE t.captured IS NULL), 0)::bigint AS held,
        coalesce(sum(t.captured), 0)::bigint AS captured,
        coalesce(sum(t.price - t.captured), 0)::bigint AS released
      FROM tasks t WHERE t.batch_id = b.id
    ) s ORDER BY b.id DESC`.pipe(
    rowsOf(Row),
    Effect.map((rows) => rows.map(batchOf))
  )

const batchOf = (row: typeof Row.Type): TaskBatch => ({
  id: row.id,
  status: row.open === 0 ? "completed" : "in_progress",
  counts: {
    total: row.total,
    pending: row.pending,
    processing: row.processing,
    completed: row.completed,
    failed: row.failed
  },
  receipt: {
    held: row.held,
    captured: row.captured,
    released: row.released,
    currency: "credits"
  },
  created_at: row.createdAt,
  ended_at: row.endedAt
})
