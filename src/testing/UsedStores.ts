/* oxlint-disable no-await-in-loop -- a store has one session, which runs one statement at a time */
import { PGlite } from "@electric-sql/pglite"
import { startParams } from "../db/PgliteOptions.ts"
import { forgetSession } from "../db/PgliteStream.ts"
import { rowCountsSql, schemaCatalogs, sequencesSql } from "./RowCounts.ts"
import type { RowCounts } from "./RowCounts.ts"

/**
 * Embedded in-memory stores that tests have finished with. Creating one from a template costs as much as the rest of a
 * gateway's start, so the next test with the same template gets a used one, emptied. A store whose schema or initial
 * rows were changed is closed instead.
 */
const idle: Array<UsedStore> = []
/** Keeping more would only take memory, because a test seldom uses more at once. */
const idleMax = 4

interface UsedStore {
  /** The name of its template. */
  readonly name: string
  readonly pglite: PGlite
  readonly initial: Initial
  /** The counts of each table when the store was last given to a test. */
  counts: RowCounts
}

/** The state of a new store. */
interface Initial {
  /** Tables that have initial rows, and those that schema changes write to. */
  readonly kept: ReadonlyArray<string>
  /** SQL that resets the sequences. */
  readonly sequences: string
}

export const takeStore = async (name: string, template: Blob): Promise<UsedStore> => {
  const found = idle.findIndex((store) => store.name === name)
  const [used] = found < 0 ? [] : idle.splice(found, 1)
  if (used !== undefined) return used
  const pglite = await PGlite.create({ loadDataDir: template, startParams: startParams(false) })
  return { name, pglite, initial: await initialOf(pglite), counts: await countsOf(pglite) }
}

export const returnStore = async (store: UsedStore): Promise<void> => {
  const isReset = await reset(store).catch(() => false)
  if (isReset) {
    await store.pglite.exec(rest)
    idle.push(store)
  }
  const surplus = isReset ? idle.splice(0, idle.length - idleMax) : [store]
  for (const { pglite } of surplus) await pglite.close().catch(() => {})
}

/**
 * Lets the process exit. Postgres wakes every 10 seconds while statistics are unwritten, and PGlite's alarm for that
 * keeps the process alive, so `node --test` would wait forever. This writes them now and replaces the alarm with a
 * nearer one.
 */
const rest = `
  BEGIN; SET LOCAL statement_timeout = '50ms'; SELECT pg_stat_force_next_flush(); COMMIT`

const initialOf = async (pglite: PGlite): Promise<Initial> => {
  const filled: Array<string> = []
  for (const table of (await countsOf(pglite)).keys()) {
    const rows = await column(pglite, `SELECT 'a row' FROM ${table} LIMIT 1`)
    if (rows.length > 0) filled.push(table)
  }
  const sequences = await column(pglite, sequencesSql)
  return { kept: [...catalogs, ...filled], sequences: `SELECT ${sequences.join(", ")}` }
}

const reset = async (store: UsedStore): Promise<boolean> => {
  const { counts: before, initial, pglite } = store
  if (pglite.isInTransaction()) await pglite.exec("ROLLBACK")
  await pglite.exec(forgetSession)
  // Its empty pages would remain and affect Postgres's plans
  if ((await largestTable(pglite)) > tableBytesMax) return false
  const after = await countsOf(pglite)
  const written = [...after.keys()].filter((table) => after.get(table) !== before.get(table))
  if (after.size !== before.size || written.some((table) => initial.kept.includes(table)))
    return false
  await pglite.exec(
    [
      "SET session_replication_role = replica",
      ...written.map((table) => `DELETE FROM ${table}`),
      initial.sequences,
      "SET session_replication_role = origin"
    ].join(";")
  )
  store.counts = await countsOf(pglite)
  return true
}

/** A store is not reused if its largest table exceeds this size. */
const tableBytesMax = 1024 * 1024

const largestTable = async (pglite: PGlite): Promise<number> => {
  const [bytes = "0"] = await column(
    pglite,
    `SELECT max(pg_relation_size(oid))::text FROM pg_class
     WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
  )
  return Number(bytes)
}

const catalogs = [...schemaCatalogs, "pg_db_role_setting"]

const countsOf = async (pglite: PGlite): Promise<RowCounts> => {
  // PGlite does not write statistics by itself
  await pglite.exec("SELECT pg_stat_force_next_flush()")
  const statement = rowCountsSql(catalogs)
  const { rows } = await pglite.query<[string, string]>(statement, [], { rowMode: "array" })
  return new Map(rows)
}

const column = async (pglite: PGlite, statement: string): Promise<ReadonlyArray<string>> => {
  const { rows } = await pglite.query<[string]>(statement, [], { rowMode: "array" })
  return rows.map(([value]) => value)
}
