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
import type { TaskBatch } from "../../domain/task/TaskBatch.ts"
import { makeAcceptBatch } from "../creation/TaskAcceptStore.ts"
import { summaryColumns, TaskSummary } from "../history/TaskHistoryStore.ts"

/** Batches: tasks that one request created together. docs/reference/batches.md */
export class TaskBatchStore extends Context.Service<TaskBatchStore>()(
  "gateway/tasks/TaskBatchStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /** Accepts all tasks or none. The idempotency record is stored with the first one. */
      accept: makeAcceptBatch(sql),
      find: (userId: UserId, id: TaskBatchId) => storeFailures(findBatch(sql, userId, id)),
      /** Newest first. */
      list: (
        userId: UserId,
        { before, limit }: { readonly before: TaskBatchId | undefined; readonly limit: number }
      ) =>
        sql`
          SELECT * FROM task_batches b
          WHERE ${sql.and([sql`b.user_id = ${userId}`, ...when(before, (it) => sql`b.id < ${it}`)])}
            ORDER BY b.id DESC LIMIT ${limit}`.pipe(
          rowsOf(Row),
          Effect.map(Array.map(batchOf)),
          storeFailures
        ),
      /** In the order of the request. */
      tasks: (
        id: TaskBatchId,
        { after, limit }: { readonly after: TaskId | undefined; readonly limit: number }
      ) =>
        sql`
          SELECT ${sql.literal(summaryColumns)} FROM tasks t
          WHERE ${sql.and([sql`t.batch_id = ${id}`, ...when(after, (it) => sql`t.id > ${it}`)])}
            ORDER BY t.id LIMIT ${limit}`.pipe(rowsOf(TaskSummary), storeFailures),
      unfinished: (id: TaskBatchId) =>
        sql`
          SELECT ${sql.literal(taskColumns)} FROM tasks t
          WHERE t.batch_id = ${id} AND t.status IN ('pending', 'processing')
          ORDER BY t.id LIMIT ${batchTasksMax}`.pipe(rowsOf(TaskView), storeFailures)
    }))
  }
) {
  static readonly layer = Layer.effect(TaskBatchStore, TaskBatchStore.make)
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
