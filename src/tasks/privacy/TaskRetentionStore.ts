import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { rowOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { TaskId } from "../../domain/Ids.ts"

/** Deletes old tasks and removes old task bodies. docs/reference/privacy.md#retention */
export class TaskRetentionStore extends Context.Service<TaskRetentionStore>()(
  "gateway/tasks/TaskRetentionStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => {
      const Count = Schema.Struct({ n: Schema.Int })
      const count = <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
        statement.pipe(
          rowOf(Count),
          Effect.map(({ n }) => n),
          storeFailures
        )
      return {
        /** Deletes finished tasks with ids below `before`, oldest first, and their attempts; returns how many. */
        deleteBefore: (before: TaskId, limit: number) =>
          count(sql`SELECT tasks_delete_before(${before}::uuid, ${limit}::int) AS n`),
        /** Removes the bodies of the next finished tasks with ids below `before`; returns how many. */
        scrubBefore: (before: TaskId, limit: number) => {
          const half = (n: 0 | 1) =>
            count(sql`SELECT task_bodies_remove(${before}::uuid, ${limit}::int, ${n}::int) AS n`)
          return Effect.andThen(half(0), half(1))
        }
      }
    })
  }
) {
  static readonly layer = Layer.effect(TaskRetentionStore, TaskRetentionStore.make)
}
