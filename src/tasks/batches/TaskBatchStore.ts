import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import { when } from "../../db/ListScan.ts"
import { Micro, rowsOf, Time } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { taskColumns, TaskView } from "../../db/TaskRow.ts"
import * as Credits from "../../domain/Credits.ts"
import { TaskBatchId } from "../../domain/Ids.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import { batchTasksMax } from "../../domain/limits/ShapeLimits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import type { TaskBatch } from "../../domain/task/TaskBatch.ts"
import { makeAcceptBatch } from "../creation/TaskAcceptStore.ts"
import type { BatchOutcome } from "../creation/TaskAcceptStore.ts"
import { summaryColumns, TaskSummary } from "../history/TaskHistoryStore.ts"
import type { Acceptance } from "../TaskStore.ts"

/** Batches: tasks that one request created together. docs/reference/batches.md */
export class TaskBatchStore extends Context.Service<
  TaskBatchStore,
  {
    /** Accepts all tasks or none. The idempotency record is stored with the first one. */
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
          sql`
            SELECT * FROM task_batches b
            WHERE ${sql.and([sql`b.user_id = ${userId}`, ...when(before, (it) => sql`b.id < ${it}`)])}
            ORDER BY b.id DESC LIMIT ${limit}`.pipe(
            rowsOf(Row),
            Effect.map(Array.map(batchOf)),
            storeFailures
          ),
        tasks: (id, { after, limit }) =>
          sql`
            SELECT ${sql.literal(summaryColumns)} FROM tasks t
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

/** The batch as the current transaction sees it. */
export const findBatch = (sql: PgClient.PgClient, userId: UserId, id: TaskBatchId) =>
  sql`SELECT * FROM task_batches b WHERE b.id = ${id} AND b.user_id = ${userId}`.pipe(
    rowsOf(Row),
    Effect.map((rows) => Option.map(Array.head(rows), batchOf))
  )

const Row = Schema.Struct({
  id: TaskBatchId,
  tasks: Schema.Int,
  completed: Schema.Int,
  failed: Schema.Int,
  held: Micro,
  captured: Micro,
  released: Micro,
  createdAt: Time,
  endedAt: Schema.NullOr(Time)
})

const batchOf = (row: typeof Row.Type): TaskBatch => {
  const { captured, completed, failed, held, released, tasks } = row
  return {
    id: row.id,
    status: row.endedAt === null ? "in_progress" : "completed",
    counts: { total: tasks, unfinished: tasks - completed - failed, completed, failed },
    receipt: {
      held: Credits.make(held - captured - released),
      captured,
      released,
      currency: "credits"
    },
    created_at: row.createdAt,
    ended_at: row.endedAt
  }
}
