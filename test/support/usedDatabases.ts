import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { layerPostgres } from "../../src/db/Database.ts"
import { rowCountsSql, schemaCatalogs, sequencesSql } from "../../src/testing/RowCounts.ts"
import type { RowCounts } from "../../src/testing/RowCounts.ts"

/**
 * Databases on the run's server that tests have finished with. Copying a database from its template and dropping it
 * costs the server four times as much as emptying it, so the next test with the same template gets a used one. A
 * database whose schema or initial rows were changed is dropped instead.
 */
const idle: Array<UsedDatabase> = []
/** How many databases are kept per worker and template; a test seldom uses more at once. */
const idleMax = 3

export interface UsedDatabase {
  readonly template: string
  readonly url: URL
  readonly initial: Initial
}

/** The initial state of a database. */
interface Initial {
  /** Rows inserted, updated and deleted, by table, including the catalogs that schema changes write to. */
  readonly counts: RowCounts
  /** Tables with initial rows. */
  readonly filled: ReadonlyArray<string>
  /** A statement that resets the sequences. */
  readonly sequences: string
}

/** Takes a used database that has been emptied. */
export const takeUsed = (template: string): UsedDatabase | undefined => {
  const found = idle.findIndex((it) => it.template === template)
  return found < 0 ? undefined : idle.splice(found, 1)[0]
}

/** Records the initial state of a database that has just been copied from its template. */
export const withInitial = Effect.fnUntraced(function* (template: string, url: URL) {
  const read = Effect.gen(function* () {
    const sequences = Array.from(yield* run(sequencesSql), ({ name }) => name).join(", ")
    return { counts: yield* startCounting, filled: yield* filledTables, sequences }
  })
  const initial = known.get(template) ?? (yield* within(url, read))
  known.set(template, initial)
  return { template, url, initial } satisfies UsedDatabase
})

/** One state per template, because all copies of it are equal. */
const known = new Map<string, Initial>()

/** Empties the database for the next test. False if it has to be dropped. */
export const giveBack = (database: UsedDatabase) =>
  within(database.url, reset(database.initial)).pipe(
    Effect.map((isReset) => {
      const alike = idle.filter(({ template }) => template === database.template)
      if (!isReset || alike.length >= idleMax) return false
      idle.push(database)
      return true
    }),
    Effect.catchCause(() => Effect.succeed(false))
  )

const reset = Effect.fnUntraced(function* (initial: Initial) {
  yield* endOthers
  const counts = yield* countsNow
  const written = [...counts.keys()].filter(
    (table) => counts.get(table) !== initial.counts.get(table)
  )
  const isKept = (table: string) => table.startsWith("pg_") || initial.filled.includes(table)
  if (written.some(isKept) || counts.size !== initial.counts.size) return false
  yield* run(`DO $$ BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);
    ${written.length === 0 ? "" : `TRUNCATE ${written.join(", ")} CASCADE;`}
    PERFORM ${initial.sequences};
  END $$`)
  const after = yield* startCounting
  return [...after].every(([table, count]) => count === initial.counts.get(table))
})

/** Ends the other sessions, because their statistics are only written when they end. */
const endOthers = Effect.flatMap(
  // Materialized, so that all sessions of this database are found before the first one is ended
  run(`WITH others AS MATERIALIZED (
         SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid())
       SELECT pid::text FROM others WHERE NOT pg_terminate_backend(pid, 5000)`),
  (left) =>
    left.length === 0
      ? Effect.void
      : Effect.die(new Error("a session of the database has not ended"))
)

/** The catalogs of the schema and of the planner's statistics. */
const catalogs = [...schemaCatalogs, "pg_namespace", "pg_statistic"]

const countsNow = Effect.map(
  run(rowCountsSql(catalogs)),
  (rows): RowCounts => new Map(rows.map(({ count, name }) => [name ?? "", count ?? ""]))
)

/** Resets the statistics. */
const startCounting = run("SELECT pg_stat_force_next_flush()").pipe(
  Effect.andThen(run("SELECT pg_stat_reset()")),
  Effect.andThen(countsNow)
)

const filledTables = Effect.flatMap(
  run(`SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'r'
         AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0`),
  (tables) => {
    const names = tables.map(({ name }) => name ?? "")
    if (names.length === 0) return Effect.succeed([])
    const each = names.map((name) => `SELECT '${name}' AS name WHERE EXISTS (SELECT FROM ${name})`)
    return Effect.map(run(each.join(" UNION ALL ")), (rows) => rows.map(({ name }) => name ?? ""))
  }
)

function run(statement: string) {
  return Effect.flatMap(
    PgClient.PgClient,
    (sql) => sql.unsafe<Readonly<Record<string, string>>>(statement).unprepared
  )
}

const within = <A, E>(url: URL, work: Effect.Effect<A, E, PgClient.PgClient>) =>
  Effect.provide(work, layerPostgres({ url: Redacted.make(url.href), maxConnections: 1 }), {
    local: true
  })
