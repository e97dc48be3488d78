import { Effect, Layer, Option, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import type { SqlError } from "effect/sql/SqlError"
import { ownerDeadSeconds } from "../domain/Limits.ts"
import { adopt, formerProcessRuns, isFormer } from "./AdoptedSchema.ts"
import { applyFunctions, changedFunctions, labelOf } from "./AppliedFunctions.ts"
import { lackedRight } from "./DatabaseUnavailable.ts"
import type { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import {
  migrationFault,
  readFunctions,
  readMigrations,
  readSchemaFile,
  schemaDirectory
} from "./SchemaFiles.ts"
import type { FunctionFile, Migration, MigrationError } from "./SchemaFiles.ts"
import { createState, hasState, readState, recordMigration, runFile } from "./SchemaState.ts"
import type { SchemaState } from "./SchemaState.ts"
import { sqlState } from "./StoreFailures.ts"

export interface MigrationsOptions {
  /** Folder with `migrations/NNNN_name.sql` and `functions/name.sql`; by default this program's. */
  readonly directory?: URL
}

interface SchemaFiles {
  readonly directory: URL
  readonly migrations: ReadonlyArray<Migration>
  readonly functions: ReadonlyArray<FunctionFile>
}

type SchemaFailure = MigrationError | DatabaseUnavailable | SqlError

/** What the role of the URL may not do is said in words: the operator grants it. */
const namingRights = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E | DatabaseUnavailable, R> =>
  Effect.mapError(self, (error) => (isSqlError(error) ? (lackedRight(error) ?? error) : error))

const readFiles = Effect.fnUntraced(function* (options: MigrationsOptions | undefined) {
  const directory = options?.directory ?? schemaDirectory
  const migrations = yield* readMigrations(directory)
  const functions = yield* readFunctions(directory)
  return { directory, migrations, functions } satisfies SchemaFiles
})

/** What an upgrade begins with. */
const upgradeFile = "upgrade.sql"

/** Any number that nothing else in the database uses as an advisory lock. */
const advisoryLock = 7_305_004_117

/** Longest wait for the lock of one statement, in which everybody else who needs that table waits too. */
const lockTimeoutSeconds = 3

/**
 * Waits of a migration that found a table in use: longer each time, because each try stops money for as long as it
 * waits for a lock, and a dump may take an hour.
 */
const busySchedule = Schedule.min([
  Schedule.exponential("2 seconds"),
  Schedule.spaced("30 seconds")
])

/** Longest silence between two statements: the longest wait between tries, and more. Whoever is gone gives up its turn. */
const turnIdleSeconds = 90

/**
 * Applies what is missing in one transaction: migrations in order, then the function files that have changed.
 * Processes of the release before see the schema with their functions, or with those that go with it, and
 * nothing in between (ADR 0158). An advisory lock makes processes that start at once do it once, and try one at
 * a time. A table that somebody keeps locked is not waited for in a queue that stops the service. Returns the names of what this
 * call applied.
 */
export const migrate = (
  options?: MigrationsOptions
): Effect.Effect<ReadonlyArray<string>, SchemaFailure, SqlClient> =>
  namingRights(migrateWith(options))

const migrateWith = Effect.fn("Migrations.migrate")(function* (
  options?: MigrationsOptions
): Effect.fn.Return<ReadonlyArray<string>, MigrationError | SqlError, SqlClient> {
  const sql = yield* SqlClient
  const files = yield* readFiles(options)
  if (yield* isUpToDate(files)) return []
  // A savepoint, whose end gives all locks of a try back, save that of the one who tries
  const tries = sql.withTransaction(apply(files)).pipe(
    Effect.retry({
      while: (error) => error._tag === "MigrationError" && error.fault === formerProcessRuns,
      schedule: Schedule.spaced("1 second"),
      times: ownerDeadSeconds + 1
    }),
    Effect.tapError((error) => (isBusy(error) ? Effect.logWarning(busyMessage) : Effect.void)),
    Effect.retry({ while: isBusy, schedule: busySchedule })
  )
  return yield* sql.withTransaction(Effect.andThen(takeTurn, tries))
})

/** One process tries at a time: each try stops money for as long as it waits for a lock (ADR 0252). */
const takeTurn = Effect.gen(function* () {
  const sql = yield* SqlClient
  // Whatever the role or the database is set to
  yield* sql`SET LOCAL statement_timeout = 0`.unprepared
  yield* sql`SET LOCAL lock_timeout = 0`.unprepared
  yield* sql.unsafe(`SET LOCAL idle_in_transaction_session_timeout = '${turnIdleSeconds}s'`)
    .unprepared
  yield* sql`SELECT pg_advisory_xact_lock(${advisoryLock})`.unprepared
})

const busyMessage = `The schema is not changed yet: another session keeps a table locked for more than ${lockTimeoutSeconds} seconds (pg_dump, VACUUM, an open transaction). It is tried again`

/** A lock that was not to be had in time, or a deadlock, which ends one of its parties. */
const isBusy = (error: MigrationError | SqlError): boolean => {
  const cause = error._tag === "MigrationError" ? error.cause : error
  return (
    isSqlError(cause) && Option.exists(sqlState(cause), (state) => /^(?:55P03|40P01)$/u.test(state))
  )
}

/**
 * What `migrate` would apply, by name; nothing: the store is up to date. Changes nothing. Fails for a store that a
 * newer program has migrated.
 */
export const inspect = (
  options?: MigrationsOptions
): Effect.Effect<ReadonlyArray<string>, SchemaFailure, SqlClient> =>
  namingRights(inspectWith(options))

const inspectWith = Effect.fn("Migrations.inspect")(function* (
  options?: MigrationsOptions
): Effect.fn.Return<ReadonlyArray<string>, MigrationError | SqlError, SqlClient> {
  const files = yield* readFiles(options)
  const none: SchemaState = { migrations: [], functions: [] }
  const state = (yield* hasState) ? yield* readState : none
  const isOld = isFormer(state.migrations)
  if (!isOld) yield* check(files, state)
  const applied = isOld ? 0 : state.migrations.length
  return [
    ...files.migrations.slice(applied).map(({ name }) => name),
    ...changedFunctions(files.functions, state).map(labelOf)
  ]
})

/** Migrates when the layer is built. */
export const layer = (options?: MigrationsOptions): Layer.Layer<never, SchemaFailure, SqlClient> =>
  Layer.effectDiscard(migrate(options))

/** The usual start needs no lock: everything is there. Faults are found here too. */
const isUpToDate = Effect.fnUntraced(function* (files: SchemaFiles) {
  if (!(yield* hasState)) return false
  const state = yield* readState
  if (isFormer(state.migrations)) return false
  yield* check(files, state)
  return (
    state.migrations.length === files.migrations.length &&
    changedFunctions(files.functions, state).length === 0
  )
})

/** What is missing, in the caller's transaction. */
const apply = Effect.fnUntraced(function* (files: SchemaFiles) {
  const sql = yield* SqlClient
  yield* sql.unsafe(`SET LOCAL lock_timeout = '${lockTimeoutSeconds}s'`).unprepared
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
  const changed = changedFunctions(files.functions, state)
  const missing = files.migrations.slice(state.migrations.length)
  // Another process did it while this one waited
  if (missing.length === 0 && changed.length === 0) return applied
  if (applied.length === 0 && missing.length < files.migrations.length) {
    yield* runFile(upgradeFile, yield* readSchemaFile(files.directory, upgradeFile))
  }
  for (const next of missing) {
    yield* runFile(next.name, next.text)
    // What is checked at the end of a transaction: a table with pending checks cannot be altered
    yield* sql`SET CONSTRAINTS ALL IMMEDIATE`.unprepared
    yield* recordMigration(next)
    applied.push(next.name)
  }
  return [...applied, ...(yield* applyFunctions(changed))]
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
