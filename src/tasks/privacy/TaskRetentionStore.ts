import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { rowOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** Deletes old tasks and removes old task bodies. docs/reference/privacy.md#retention */
export class TaskRetentionStore extends Context.Service<
  TaskRetentionStore,
  {
    /** Deletes finished tasks with ids below `before`, oldest first, and their attempts; returns how many. */
    readonly deleteBefore: (
      before: TaskId,
      limit: number
    ) => Effect.Effect<number, StoreUnavailable>
    /** Removes the bodies of the next finished tasks with ids below `before`; returns how many. */
    readonly scrubBefore: (before: TaskId, limit: number) => Effect.Effect<number, StoreUnavailable>
  }
>()("gateway/tasks/TaskRetentionStore") {
  static readonly layer = Layer.effect(
    TaskRetentionStore,
    Effect.map(PgClient.PgClient, (sql) => {
      const Count = Schema.Struct({ n: Schema.Int })
      const count = <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
        statement.pipe(
          rowOf(Count),
          Effect.map(({ n }) => n),
          storeFailures
        )
      return TaskRetentionStore.of({
        deleteBefore: (before, limit) =>
          count(sql`SELECT tasks_delete_before(${before}::uuid, ${limit}::int) AS n`),
        scrubBefore: (before, limit) => {
          const half = (n: 0 | 1) =>
            count(sql`SELECT task_bodies_remove(${before}::uuid, ${limit}::int, ${n}::int) AS n`)
          return Effect.andThen(half(0), half(1))
        }
      })
    })
  )
}
