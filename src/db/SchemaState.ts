import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { MigrationError } from "./SchemaFiles.ts"
import type { FunctionFile, Migration } from "./SchemaFiles.ts"
import { splitStatements } from "./SqlStatements.ts"

/** One struct for both tables, because a usual start decodes little else. */
const Applied = Schema.Struct({
  id: Schema.NullOr(Schema.Int),
  name: Schema.String,
  sha256: Schema.String,
  /**
   * For functions: the hashes of earlier versions. A program that has one of these versions is older than the store.
   */
  earlier: Schema.NullOr(Schema.Array(Schema.String))
})
const Rows = Schema.Array(Applied)

export interface AppliedMigration {
  readonly id: number
  readonly name: string
  readonly sha256: string
}

export interface AppliedFunctions {
  readonly name: string
  readonly sha256: string
  readonly earlier: ReadonlyArray<string>
}

/** The state recorded in the database. */
export interface SchemaState {
  readonly migrations: ReadonlyArray<AppliedMigration>
  readonly functions: ReadonlyArray<AppliedFunctions>
}

/** Whether the tables of `readState` exist; one transaction creates both. */
export const hasState = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [row] = yield* sql`SELECT to_regclass('schema_functions') IS NOT NULL AS found`.values
  return row?.[0] === true
})

export const createState = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS schema_migrations (
    id int PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL
  )`.unprepared
  yield* sql`CREATE TABLE IF NOT EXISTS schema_functions (
    name text PRIMARY KEY,
    sha256 text NOT NULL,
    earlier text[] NOT NULL DEFAULT '{}',
    applied_at timestamptz NOT NULL
  )`.unprepared
})

export const readState = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql`
    SELECT id, name, sha256, NULL::text[] AS earlier FROM schema_migrations
    UNION ALL SELECT NULL, name, sha256, earlier FROM schema_functions`.unprepared
  const decoded = yield* Effect.mapError(
    Schema.decodeUnknownEffect(Rows)(rows),
    (cause) =>
      new MigrationError({
        migration: "schema_migrations",
        fault: "the table of applied migrations has rows of an unknown shape",
        remedy: "Give the program a separate database",
        cause
      })
  )
  const migrations: Array<AppliedMigration> = []
  const functions: Array<AppliedFunctions> = []
  for (const { earlier, id, name, sha256 } of decoded) {
    if (id !== null) migrations.push({ id, name, sha256 })
    else functions.push({ name, sha256, earlier: earlier ?? [] })
  }
  migrations.sort((a, b) => a.id - b.id)
  return { migrations, functions } satisfies SchemaState
})

/** Runs each statement of a file. */
export const runFile = Effect.fnUntraced(function* (
  name: string,
  text: string,
  remedy = "Nothing was applied; correct it and start again"
) {
  const sql = yield* SqlClient
  for (const [index, statement] of splitStatements(text).entries()) {
    yield* Effect.mapError(
      sql.unsafe(statement).unprepared,
      (error) =>
        new MigrationError({
          migration: name,
          fault: `statement ${index + 1} fails (${causeMessage(error)})`,
          remedy,
          cause: error
        })
    )
  }
})

const causeMessage = (error: SqlError): string =>
  error.reason.cause instanceof Error ? error.reason.cause.message : error.message

export const recordMigration = Effect.fnUntraced(function* ({ id, name, sha256 }: Migration) {
  const sql = yield* SqlClient
  const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  yield* sql`INSERT INTO schema_migrations (id, name, sha256, applied_at)
    VALUES (${id}, ${name}, ${sha256}, ${new Date(now)})`.unprepared
})

export const recordFunctions = Effect.fnUntraced(function* (files: ReadonlyArray<FunctionFile>) {
  const sql = yield* SqlClient
  const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  yield* sql`INSERT INTO schema_functions AS f (name, sha256, applied_at)
    SELECT name, sha256, ${new Date(now)}::timestamptz FROM unnest(
      ${files.map(({ name }) => name)}::text[], ${files.map(({ sha256 }) => sha256)}::text[]
    ) AS x (name, sha256)
    ON CONFLICT (name) DO UPDATE SET sha256 = excluded.sha256, applied_at = excluded.applied_at,
      earlier = f.earlier || f.sha256`.unprepared
})
