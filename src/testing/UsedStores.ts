/* oxlint-disable no-await-in-loop -- a store has one session, which runs one statement at a time */
import { PGlite } from "@electric-sql/pglite"
import { startParams } from "../db/PgliteOptions.ts"

/**
 * Embedded stores in memory that a test has ended with. To make one from a template costs as much as
 * the rest of a gateway's start, so the next test with that template receives a used one, emptied. A
 * store whose schema or initial rows were changed is closed instead.
 */
const idle: Array<UsedStore> = []
/** More of them would only take memory: a test seldom has more at once. */
const idleMax = 4

interface UsedStore {
  /** Of its template. */
  readonly name: string
  readonly pglite: PGlite
  readonly initial: Initial
}

/** What a store has when it is new. */
interface Initial {
  readonly schema: string
  /** Tables with rows, and their rows. */
  readonly filled: ReadonlyMap<string, string>
  /** Statements that empty the other tables and set the sequences back. */
  readonly reset: string
}

export const takeStore = async (name: string, template: Blob): Promise<UsedStore> => {
  const found = idle.findIndex((store) => store.name === name)
  const [used] = found < 0 ? [] : idle.splice(found, 1)
  if (used !== undefined) return used
  const pglite = await PGlite.create({ loadDataDir: template, startParams: startParams(false) })
  return { name, pglite, initial: await look(pglite) }
}

export const returnStore = async (store: UsedStore): Promise<void> => {
  const isReset = await reset(store).catch(() => false)
  if (isReset) idle.push(store)
  const rest = isReset ? idle.splice(0, idle.length - idleMax) : [store]
  for (const { pglite } of rest) await pglite.close().catch(() => {})
}

const look = async (pglite: PGlite): Promise<Initial> => {
  const tables = await column(
    pglite,
    `SELECT oid::regclass::text FROM pg_class
     WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace`
  )
  const filled = new Map<string, string>()
  for (const table of tables) {
    const rows = await rowsOf(pglite, table)
    if (rows !== "") filled.set(table, rows)
  }
  const empty = tables.filter((table) => !filled.has(table))
  const sequences = await column(
    pglite,
    `SELECT format('SELECT setval(%L, %s, %L)', format('%I.%I', schemaname, sequencename),
       coalesce(last_value, start_value), last_value IS NOT NULL) FROM pg_sequences`
  )
  return {
    schema: await schemaOf(pglite),
    filled,
    reset: [
      "SET session_replication_role = replica",
      ...empty.map((table) => `DELETE FROM ${table}`),
      ...sequences,
      "SET session_replication_role = origin"
    ].join(";")
  }
}

/** DISCARD ALL without its DISCARD PLANS: the functions keep their plans. */
const forgetSession = `
  CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ALL; DEALLOCATE ALL; UNLISTEN *;
  SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES`

const reset = async ({ initial, pglite }: UsedStore): Promise<boolean> => {
  if (pglite.isInTransaction()) await pglite.exec("ROLLBACK")
  await pglite.exec(forgetSession)
  await pglite.exec(initial.reset)
  for (const [table, rows] of initial.filled) {
    if ((await rowsOf(pglite, table)) !== rows) return false
  }
  return (await schemaOf(pglite)) === initial.schema
}

const rowsOf = async (pglite: PGlite, table: string) => {
  const rows = await column(pglite, `SELECT t::text FROM ${table} t ORDER BY 1`)
  return rows.join("\n")
}

/** Each statement that changes the schema writes a row of one of these. */
const schemaOf = async (pglite: PGlite) => {
  const catalogs = [
    "pg_class WHERE relpersistence <> 't'",
    "pg_proc",
    "pg_trigger",
    "pg_constraint",
    "pg_attribute WHERE attnum > 0",
    "pg_db_role_setting"
  ]
  const counts = await column(
    pglite,
    catalogs
      .map((it) => `SELECT format('%s %s', count(*), max(xmin::text::bigint)) FROM ${it}`)
      .join(" UNION ALL ")
  )
  return counts.join("\n")
}

const column = async (pglite: PGlite, statement: string): Promise<ReadonlyArray<string>> => {
  const { rows } = await pglite.query<[string]>(statement, [], { rowMode: "array" })
  return rows.map(([value]) => value)
}
