import { Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ownerDeadSeconds } from "../domain/Limits.ts"
import { adopt, formerProcessRuns, isFormer } from "./AdoptedSchema.ts"
import { deadlockRetries, isDeadlock } from "./BatchWrites.ts"
import { migrationFault, readFunctions, readMigrations, schemaDirectory } from "./SchemaFiles.ts"
import type { FunctionFile, Migration, MigrationError } from "./SchemaFiles.ts"
import {
  createState,
  hasState,
  readState,
  recordFunctions,
  recordMigration,
  runFile
} from "./SchemaState.ts"
import type { SchemaState } from "./SchemaState.ts"

export interface MigrationsOptions {
  /** Folder with `migrations/NNNN_name.sql` and `functions/name.sql`; by default this program's. */
  readonly directory?: URL
}

interface SchemaFiles {
  readonly directory: URL
  readonly migrations: ReadonlyArray<Migration>
  readonly functions: ReadonlyArray<FunctionFile>
}

/** Any number that nothing else in the database uses as an advisory lock. */
const advisoryLock = 7_305_004_117

/**
 * Applies what is missing in one transaction: migrations in order, then the function files that have changed. A process
 * of the release before sees tables and functions that belong together, also when this one dies between two migrations.
 * An advisory lock makes processes that start at once do it once. Returns the names of what this call applied. ADR 0146
 */
export const migrate = Effect.fn("Migrations.migrate")(function* (
  options?: MigrationsOptions
): Effect.fn.Return<ReadonlyArray<string>, MigrationError | SqlError, SqlClient> {
  const sql = yield* SqlClient
  const directory = options?.directory ?? schemaDirectory
  const files: SchemaFiles = {
    directory,
    migrations: yield* readMigrations(directory),
    functions: yield* readFunctions(directory)
  }
  if (yield* isUpToDate(files)) return []
  return yield* sql.withTransaction(applyMissing(files)).pipe(
    // Its locks may meet those of a running process in another order
    Effect.retry({
      while: (error) => isDeadlock(error._tag === "MigrationError" ? error.cause : error),
      times: deadlockRetries
    }),
    Effect.retry({
      while: (error) => error._tag === "MigrationError" && error.fault === formerProcessRuns,
      schedule: Schedule.spaced("1 second"),
      times: ownerDeadSeconds + 1
    })
  )
})

/**
 * What `migrate` would apply, by name; nothing: the store is up to date. Changes nothing. Fails for a store that a
 * newer program has migrated.
 */
export const inspect = Effect.fn("Migrations.inspect")(function* (
  options?: MigrationsOptions
): Effect.fn.Return<ReadonlyArray<string>, MigrationError | SqlError, SqlClient> {
  const directory = options?.directory ?? schemaDirectory
  const migrations = yield* readMigrations(directory)
  const functions = yield* readFunctions(directory)
  const files: SchemaFiles = { directory, migrations, functions }
  const none: SchemaState = { migrations: [], functions: [] }
  const state = (yield* hasState) ? yield* readState : none
  const isOld = isFormer(state.migrations)
  if (!isOld) yield* check(files, state)
  const applied = isOld ? 0 : state.migrations.length
  return [
    ...migrations.slice(applied).map(({ name }) => name),
    ...changedFunctions(files, state).map(labelOf)
  ]
})

/** Migrates when the layer is built. */
export const layer = (
  options?: MigrationsOptions
): Layer.Layer<never, MigrationError | SqlError, SqlClient> => Layer.effectDiscard(migrate(options))

/** The usual start needs no lock: everything is there. Faults are found here too. */
const isUpToDate = Effect.fnUntraced(function* (files: SchemaFiles) {
  if (!(yield* hasState)) return false
  const state = yield* readState
  if (isFormer(state.migrations)) return false
  yield* check(files, state)
  return (
    state.migrations.length === files.migrations.length &&
    changedFunctions(files, state).length === 0
  )
})

const applyMissing = Effect.fnUntraced(function* (files: SchemaFiles) {
  const sql = yield* SqlClient
  // Whatever the role or the database is set to
  yield* sql`SET LOCAL statement_timeout = 0`.unprepared
  yield* sql`SELECT pg_advisory_xact_lock(${advisoryLock})`.unprepared
  yield* createState
  const applied: Array<string> = []
  let state = yield* readState
  const [initial] = files.migrations
  if (initial !== undefined && isFormer(state.migrations)) {
    yield* adopt(state.migrations, files.directory, initial)
    state = yield* readState
    applied.push(initial.name)
  }
  yield* check(files, state)
  for (const next of files.migrations.slice(state.migrations.length)) {
    yield* runFile(next.name, next.text)
    yield* recordMigration(next)
    applied.push(next.name)
  }
  return [...applied, ...(yield* applyFunctions(changedFunctions(files, state)))]
})

const changedFunctions = ({ functions }: SchemaFiles, state: SchemaState) =>
  functions.filter(
    ({ name, sha256 }) =>
      !state.functions.some((applied) => applied.name === name && applied.sha256 === sha256)
  )

const labelOf = ({ name }: { readonly name: string }): string => `functions/${name}`

const signatureRemedy =
  "Give a function whose signature changes a new name, and keep the old one for one release"

const applyFunctions = Effect.fnUntraced(function* (files: ReadonlyArray<FunctionFile>) {
  const sql = yield* SqlClient
  if (files.length === 0) return []
  const names: Array<string> = []
  for (const file of files) {
    yield* runFile(labelOf(file), file.text, `Nothing was applied. ${signatureRemedy}`)
    for (const [, name = ""] of file.text.matchAll(/^create or replace function (\w+)/gmu)) {
      names.push(name)
    }
  }
  const [overloaded] = yield* sql`
    SELECT proname FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND proname = ANY(${names}::text[])
    GROUP BY proname HAVING count(*) > 1 ORDER BY proname LIMIT 1`.values
  if (overloaded !== undefined) {
    const fault = `the database has ${String(overloaded[0])} with another signature`
    return yield* migrationFault("functions", fault, signatureRemedy)
  }
  yield* recordFunctions(files)
  return files.map(labelOf)
})

const check = Effect.fnUntraced(function* (files: SchemaFiles, state: SchemaState) {
  for (const row of state.migrations) {
    const known = files.migrations.find((migration) => migration.id === row.id)
    if (known === undefined) {
      const fault = "the database has it, this program does not"
      return yield* migrationFault(row.name, fault, "Start a newer version")
    }
    if (known.sha256 !== row.sha256) {
      const remedy = "Restore the file and put the change into a new migration"
      return yield* migrationFault(known.name, "its file was changed after it was applied", remedy)
    }
  }
  const last = state.migrations.at(-1)?.id ?? 0
  const skipped = files.migrations.find(
    ({ id }) => id < last && !state.migrations.some((row) => row.id === id)
  )
  if (skipped !== undefined) {
    const remedy = "Give it the next free number"
    return yield* migrationFault(skipped.name, "a later one is applied already", remedy)
  }
  const newer = files.functions.find(({ name, sha256 }) =>
    state.functions.some((row) => row.name === name && row.earlier.includes(sha256))
  )
  if (newer !== undefined) {
    const fault = "the database has a newer version of it"
    const remedy =
      "Start a newer version; a file that was changed back on purpose needs a new comment"
    return yield* migrationFault(labelOf(newer), fault, remedy)
  }
})
