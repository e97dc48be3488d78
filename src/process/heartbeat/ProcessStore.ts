import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Statement } from "effect/sql/Statement"
import { DirectConnection } from "../../db/DirectConnection.ts"
import { rowOf, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { markStore } from "../../db/StoreMark.ts"
import type { ProcessAhead } from "../../db/StoreMark.ts"
import { ownerDeadSeconds } from "../../domain/limits/Limits.ts"

/** A duty, and the interval at which one of the processes does it. */
export interface DutyInterval {
  readonly name: string
  readonly seconds: number
}

/** The result of a heartbeat. The column names are single words, so they need no renaming. */
const News = Schema.Struct({
  /** The current time by the clock of heartbeats. */
  at: Time,
  /**
   * The progress of this process in the store. Lower than what the process knows only if the store went back in time.
   */
  advance: Schema.Finite,
  /** The Postgres timeline; 0 if unknown. */
  timeline: Schema.Int,
  /** Whether this heartbeat is the first to find that the timeline has changed. */
  moved: Schema.Boolean,
  /** The duties that this process has taken. */
  duties: Schema.Array(Schema.String),
  /** The oldest heartbeat among other processes that are not dead yet. */
  silent: Schema.NullOr(Time),
  /** Whether tasks wait for their next step. */
  waiting: Schema.Boolean,
  /** Whether this process has tasks in hand. */
  owns: Schema.Boolean,
  catalog: Schema.String,
  drains: Schema.String,
  faults: Schema.String
})
export type News = typeof News.Type

const heartbeat = `
  SELECT * FROM process_heartbeat(
    $1, coalesce($2::timestamptz, clock_timestamp()), $3, $4::text[], $5::float8[], $6::float8::bigint)`

/** An advisory lock number that nothing else in the database uses. */
const entranceLock = 7_305_004_119

const Ids = Schema.Struct({ id: Schema.String })

const firstId = (statement: Statement<unknown>) =>
  statement.pipe(
    rowsOf(Ids),
    Effect.map((rows) => Option.map(Option.fromUndefinedOr(rows[0]), ({ id }) => id)),
    storeFailures
  )

/** The heartbeats of the service's processes. */
export class ProcessStore extends Context.Service<ProcessStore>()("gateway/process/ProcessStore", {
  make: Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const query = Option.match(yield* DirectConnection, {
      onNone: () => (statement: string, parameters: ReadonlyArray<unknown>) =>
        storeFailures(sql.unsafe<object>(statement, parameters)),
      onSome: (direct) => direct.query
    })
    const alive = (since: DateTime.Utc) =>
      sql`SELECT id FROM processes WHERE heartbeat_at >= ${toDate(since)} ORDER BY id`.pipe(
        rowsOf(Ids),
        Effect.map((rows) => rows.map(({ id }) => id))
      )
    return {
      /**
       * Writes the first heartbeat, unless `isRefused` rejects a process that is alive; then returns the ids of those
       * rejected. Processes enter one at a time, so each sees those that entered before. ADR 0222
       */
      enter: Effect.fnUntraced(
        function* (
          id: string,
          now: DateTime.Utc | null,
          {
            isRefused,
            since
          }: { readonly since: DateTime.Utc; readonly isRefused: (id: string) => boolean }
        ) {
          yield* sql`SELECT pg_advisory_xact_lock(${entranceLock})`
          const refused = (yield* alive(since)).filter(isRefused)
          if (refused.length > 0) return refused
          const at = now === null ? null : toDate(now)
          yield* sql`
            INSERT INTO processes (id, started_at, heartbeat_at)
            SELECT ${id}, at, at
            FROM (SELECT coalesce(${at}::timestamptz, clock_timestamp()) AS at) AS x`
          return []
        },
        (self) => storeFailures(sql.withTransaction(self))
      ),
      /**
       * Writes a heartbeat and takes due duties. `now` defaults to the server's time. Never waits for other statements
       * of this process.
       */
      heartbeat: (
        id: string,
        now: DateTime.Utc | null,
        duties: ReadonlyArray<DutyInterval> = [],
        /** The highest `advance` that the process knows. */
        seen = 0
      ) =>
        query(heartbeat, [
          id,
          now === null ? null : toDate(now),
          ownerDeadSeconds,
          duties.map(({ name }) => name),
          duties.map(({ seconds }) => seconds),
          seen
        ]).pipe(rowOf(News), storeFailures),
      /** Marks the store as having gone back in time, unless another process has already done so. docs/standbys.md */
      markRestored: (ahead: ProcessAhead, now: DateTime.Utc | null) =>
        markStore({ by: `process ${ahead.id}`, now, ahead }).pipe(
          Effect.provideService(SqlClient, sql),
          storeFailures
        ),
      /**
       * Records that this process has ended. The next rescue frees what it owned. Its row stays, because its attempts
       * still count in the sliding minute (ADR 0104).
       */
      leave: (id: string, now: DateTime.Utc) =>
        sql`
          UPDATE processes SET heartbeat_at = '-infinity', left_at = ${toDate(now)}
          WHERE id = ${id}`.pipe(Effect.asVoid, storeFailures),
      /** The ids of processes with a heartbeat at this time or later. */
      alive: (since: DateTime.Utc) => storeFailures(alive(since)),
      /** The process that ended last, or has sent the newest heartbeat. */
      newest:
        sql`SELECT id FROM processes ORDER BY greatest(heartbeat_at, left_at) DESC LIMIT 1`.pipe(
          firstId
        ),
      /** Deletes all rows and returns the newest. Only for a store that no other process can open. */
      deleteAll: sql`
        WITH gone AS (DELETE FROM processes RETURNING id, greatest(heartbeat_at, left_at) AS seen_at)
        SELECT id FROM gone ORDER BY seen_at DESC LIMIT 1`.pipe(firstId),
      /** Deletes processes without a heartbeat since then. */
      deleteOld: (since: DateTime.Utc) =>
        sql`
          DELETE FROM processes WHERE greatest(heartbeat_at, left_at) < ${toDate(since)}`.pipe(
          Effect.asVoid,
          storeFailures
        ),
      ping: sql`SELECT 1`.pipe(Effect.asVoid, storeFailures),
      /** Succeeds if the server has space for new rows. Does not wait for other statements of this process. */
      tryToWrite: query("SELECT store_try_write()", []).pipe(Effect.asVoid, storeFailures)
    }
  })
}) {
  static readonly layer = Layer.effect(ProcessStore, ProcessStore.make)
}
