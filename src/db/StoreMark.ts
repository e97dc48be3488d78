import { Effect, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { rowsOf, Time, toDate } from "./Rows.ts"

/** The mark of a store that went back in time. docs/standbys.md */
const Mark = Schema.Struct({
  restoredAt: Time,
  /** The newest heartbeat in the store; later writes are lost. `null` if there was no heartbeat. */
  trustedUntil: Schema.NullOr(Time),
  /** Unfinished tasks whose newest submit the store may have lost. */
  tasksInDoubt: Schema.Int,
  /** Open holds of calls and reservations, which the next rescue ends. */
  holdsEnded: Schema.Int
})
export type Mark = typeof Mark.Type

/** A process that found the store behind its own progress. */
export interface ProcessAhead {
  readonly id: string
  /** The highest `advance` that the process knows. */
  readonly seen: number
  /** Its last heartbeat before it found that. */
  readonly since: DateTime.Utc
}

/**
 * Marks the store, on behalf of a process that is ahead of it. Does nothing if another process has marked it since that
 * process's last good heartbeat (`None`). The time defaults to the server's.
 */
export const markStore = (mark: {
  readonly by: string
  readonly now: DateTime.Utc | null
  /** The operator knows that no submit was lost, so no task is marked as in doubt. */
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
