import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { when } from "../../db/ListScan.ts"
import { rowsOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskRow } from "../../db/TaskRow.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"

/** A page of videos, ordered by id and therefore by creation time. */
export interface VideoPage {
  readonly after?: TaskId | undefined
  readonly limit: number
  readonly isAscending: boolean
}

/** A video's task, and the progress that its vendor reports, in per cent. */
const VideoRow = Schema.Struct({
  ...TaskRow.fields,
  progress: Schema.NullOr(Schema.Int)
})
export type VideoRow = typeof VideoRow.Type

const columns = "t.*, (SELECT r.progress FROM runs r WHERE r.task_id = t.id) AS progress"

/** Tasks that generate videos, for OpenAI's video API. Omits deleted ones. */
export class VideoStore extends Context.Service<VideoStore>()("gateway/tasks/VideoStore", {
  make: Effect.map(PgClient.PgClient, (sql) => {
    const ofUser = (userId: UserId) =>
      sql`t.user_id = ${userId} AND t.result_kind = 'videos' AND t.deleted_at IS NULL`
    return {
      find: (userId: UserId, id: TaskId) =>
        sql`
          SELECT ${sql.literal(columns)} FROM tasks t WHERE t.id = ${id} AND ${ofUser(userId)}`.pipe(
          rowsOf(VideoRow),
          Effect.map(Array.head),
          storeFailures
        ),
      list: (userId: UserId, { after, isAscending, limit }: VideoPage) => {
        const beyond = when(after, (id) => (isAscending ? sql`t.id > ${id}` : sql`t.id < ${id}`))
        return sql`
          SELECT ${sql.literal(columns)} FROM tasks t WHERE ${sql.and([ofUser(userId), ...beyond])}
          ORDER BY t.id ${sql.literal(isAscending ? "ASC" : "DESC")} LIMIT ${limit}`.pipe(
          rowsOf(VideoRow),
          storeFailures
        )
      },
      /** Marks a finished video as deleted. `None`: it is unfinished or already deleted. */
      delete: (userId: UserId, id: TaskId, now: DateTime.Utc) =>
        sql`
          UPDATE tasks t SET deleted_at = ${toDate(now)}
          WHERE t.id = ${id} AND ${ofUser(userId)} AND t.status IN ('completed', 'failed')
          RETURNING t.*`.pipe(rowsOf(TaskRow), Effect.map(Array.head), storeFailures)
    }
  })
}) {
  static readonly layer = Layer.effect(VideoStore, VideoStore.make)
}
