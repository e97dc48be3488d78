import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Schedule, Schema } from "effect"
import type { Scope } from "effect"
import { warnOnce } from "../domain/WarnOnce.ts"

/** How often to check for work. */
const checkEvery = "10 seconds"
/** A checkpoint is due after this much WAL … */
const walBytesMax = 48 * 1024 * 1024
/** … or this long after the first write since the last checkpoint. */
const checkpointMillisMax = 5 * 60 * 1000
/** As in autovacuum: a table is due when it has more dead rows than this plus a share of its rows. */
const deadRowsMin = 500
const deadRowsShare = 0.1
/** Transaction ids have 32 bits and wrap around, so rows are frozen long before (autovacuum: 200 million). */
const frozenAgeMax = 100_000_000

/**
 * Does the work of a server's background processes, which PGlite does not have: checkpoints, which bound the WAL and
 * the time of a restart, and VACUUM. It uses the only connection for one table at a time, so that requests run in
 * between.
 */
export const maintain = Effect.fn("EmbeddedMaintenance.start")(function* (
  sql: PgClient.PgClient
): Effect.fn.Return<void, never, Scope.Scope> {
  // Earlier writes count as not covered, because the store may have been killed
  const covered = { position: 0n, since: yield* Clock.currentTimeMillis }
  const once = Effect.andThen(checkpoint(sql, covered), vacuum(sql)).pipe(
    warnOnce("Maintenance of the embedded store failed")
  )
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(once, checkEvery), Schedule.forever))
})

const Position = Schema.NonEmptyArray(Schema.Struct({ position: Schema.BigInt }))

const walPosition = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const rows = yield* sql`SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS position`
    .unprepared
  return yield* Effect.map(Schema.decodeUnknownEffect(Position)(rows), ([row]) => row.position)
})

/** The WAL position that the last checkpoint covers, and since when later WAL exists. */
interface Covered {
  position: bigint
  since: number
}

const checkpoint = Effect.fnUntraced(function* (sql: PgClient.PgClient, covered: Covered) {
  const now = yield* Clock.currentTimeMillis
  const position = yield* walPosition(sql)
  const behind = position - covered.position
  const due = behind >= walBytesMax || now - covered.since >= checkpointMillisMax
  if (behind > 0n && !due) return
  if (behind > 0n) {
    yield* sql`CHECKPOINT`.unprepared
    covered.position = yield* walPosition(sql)
  }
  covered.since = now
})

const Tables = Schema.Array(Schema.Struct({ name: Schema.String, freeze: Schema.Boolean }))

const vacuum = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  // PGlite does not flush its statistics by itself
  yield* sql`SELECT pg_stat_force_next_flush()`.unprepared
  const rows = yield* sql`
    SELECT c.oid::regclass::text AS name, age(c.relfrozenxid) > ${frozenAgeMax} AS freeze
    FROM pg_class c
    LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
    WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND (
      age(c.relfrozenxid) > ${frozenAgeMax}
      OR s.n_dead_tup > ${deadRowsMin} + ${deadRowsShare} * greatest(c.reltuples, 0)
      OR s.n_mod_since_analyze > ${deadRowsMin} + ${deadRowsShare} * greatest(c.reltuples, 0)
    )`.unprepared
  for (const table of yield* Schema.decodeUnknownEffect(Tables)(rows)) {
    const options = table.freeze ? "FREEZE, ANALYZE" : "ANALYZE"
    // `regclass` has quoted the name
    yield* sql.unsafe(`VACUUM (${options}) ${table.name}`).unprepared
  }
})
