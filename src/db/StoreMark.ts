import { Effect, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { rowsOf, Time, toDate } from "./Rows.ts"

/** A store that has gone back in time, as it was marked. docs/standbys.md */
const Mark = Schema.Struct({
  restoredAt: Time,
  /** The newest heartbeat that the store knew of: what was written later is lost. `null`: it knew none. */
  trustedUntil: Schema.NullOr(Time),
  /** Unfinished tasks whose newest submit the store may have lost. */
  tasksInDoubt: Schema.Int,
  /** Open holds of calls and reservations, which the next rescue ends. */
  holdsEnded: Schema.Int
})
export type Mark = typeof Mark.Type

/** A process that has found the store behind what it knows. */
export interface ProcessAhead {
  readonly id: string
  /** The highest `advance` that it knows. */
  readonly seen: number
  /** Its last heartbeat before. */
  readonly since: DateTime.Utc
}

/**
 * Marks the store: for a process that is ahead of it, unless another one did so since that process's last good
 * heartbeat (`None`). Without a time it is the server's.
 */
export const markStore = (mark: {
  readonly by: string
  readonly now: DateTime.Utc | null
  /** The operator knows that no submit was lost: no task is in doubt. */
  readonly allowsSubmits?: boolean
  readonly ahead?: ProcessAhead
}) =>
  Effect.flatMap(
    SqlClient,
    (sql) =>
      sql`
        SELECT * FROM store_mark_restored(
          ${mark.by}, coalesce(${mark.now === null ? null : toDate(mark.now)}::timestamptz, clock_timestamp()),
          ${mark.allowsSubmits === true}, ${mark.ahead?.id ?? null}, ${mark.ahead?.seen ?? 0}::float8::bigint,
          ${mark.ahead === undefined ? null : toDate(mark.ahead.since)}::timestamptz)`
  ).pipe(
    rowsOf(Mark),
    Effect.map((rows) => Option.fromUndefinedOr(rows[0]))
  )
