import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { audited, named } from "../../db/Audited.ts"
import { rowOf, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { ArtifactId, TaskId, UserId } from "../../domain/Ids.ts"

/**
 * A deleted user. `reserved`: a process may still admit calls of a key from its reservation until the reservation
 * settles.
 */
export const DeletedUser = Schema.Struct({
  id: UserId,
  deletedAt: Time,
  erasedAt: Schema.NullOr(Time),
  reserved: Schema.Boolean
})
export type DeletedUser = typeof DeletedUser.Type

const DueRow = Schema.Struct({ id: UserId, deletedAt: Time })

/** Deletions of users, and the passes that erase their data. docs/reference/privacy.md#deletion-of-a-user */
export class UserErasureStore extends Context.Service<UserErasureStore>()(
  "gateway/tasks/UserErasureStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({ ...finds(sql), ...erases(sql) }))
  }
) {
  static readonly layer = Layer.effect(UserErasureStore, UserErasureStore.make)
}

function finds(sql: PgClient.PgClient) {
  return {
    /** Deleted users whose next pass is due. */
    due: (now: DateTime.Utc) =>
      sql`
        SELECT id, deleted_at FROM users WHERE erasure_due_at <= ${toDate(now)}
        ORDER BY erasure_due_at LIMIT 100`.pipe(rowsOf(DueRow), storeFailures),
    unfinishedTasks: (id: UserId) =>
      sql`
        SELECT task_id AS id FROM runs
        WHERE api_key_id = ANY (ARRAY(SELECT k.id FROM api_keys k WHERE k.user_id = ${id}))`.pipe(
        rowsOf(Schema.Struct({ id: TaskId })),
        Effect.map(Array.map((row) => row.id)),
        storeFailures
      ),
    /** The media of tasks created at this time or later, and all inputs: a create that was not accepted has no task. */
    artifacts: (id: UserId, since: TaskId) =>
      sql`
        SELECT a.id FROM tasks t JOIN artifacts a ON a.task_id = t.id
        WHERE t.user_id = ${id} AND t.id >= ${since}
        UNION
        SELECT id FROM artifacts WHERE user_id = ${id} AND role = 'input'`.pipe(
        rowsOf(Schema.Struct({ id: ArtifactId })),
        Effect.map(Array.map((row) => row.id)),
        storeFailures
      )
  }
}

function erases(sql: PgClient.PgClient) {
  const Last = Schema.Struct({ last: Schema.NullOr(Schema.String) })
  const last = <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
    statement.pipe(
      rowOf(Last),
      Effect.map((row) => Option.fromNullOr(row.last))
    )
  return {
    /** Ends all access and queues the erasure, in one transaction. `None`: the user does not exist. */
    delete: (id: UserId, now: DateTime.Utc) =>
      sql`SELECT * FROM user_delete(${id}::uuid, ${toDate(now)})`.pipe(
        rowsOf(DeletedUser),
        Effect.map(Array.head),
        audited(sql, Option.flatMap(named)),
        storeFailures
      ),
    /** Erases some of the user's tasks; returns where to continue. */
    eraseTasks: (id: UserId, after: string, limit: number) =>
      last(
        sql`SELECT user_tasks_erase(${id}::uuid, ${after}::uuid, ${limit}::int)::text AS last`
      ).pipe(storeFailures),
    eraseDeliveries: (id: UserId, after: string, limit: number) =>
      last(
        sql`SELECT user_deliveries_erase(${id}::uuid, ${after}::text, ${limit}::int) AS last`
      ).pipe(storeFailures),
    /** Erases everything else. `ends`: no request of the user can still be running. */
    end: (id: UserId, ends: boolean, next: DateTime.Utc, now: DateTime.Utc) =>
      sql`
        SELECT user_erasure_end(
          ${id}::uuid, ${ends}::boolean, ${toDate(next)}::timestamptz, ${toDate(now)}::timestamptz)`.pipe(
        Effect.asVoid,
        storeFailures
      )
  }
}
