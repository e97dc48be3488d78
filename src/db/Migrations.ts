import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import type { SqlError } from "effect/sql/SqlError"
import { lockedTableRetries } from "../domain/Retries.ts"
import { applyFunctions, changedFunctions, labelOf } from "./AppliedFunctions.ts"
import { refusedBy } from "./DatabaseUnavailable.ts"
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
  /** The folder with `migrations/NNNN_name.sql` and `functions/name.sql`. Default: this program's own. */
  readonly directory?: URL
}

interface SchemaFiles {
  readonly directory: URL
  readonly migrations: ReadonlyArray<Migration>
  readonly functions: ReadonlyArray<FunctionFile>
}

type SchemaFailure = MigrationError | DatabaseUnavailable | SqlError

/** Turns a refusal of the server into an error that names its reason, which the operator can remove. */
export const namingRefusals = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E | DatabaseUnavailable, R> =>
  Effect.mapError(self, (error) => (isSqlError(error) ? (refusedBy(error) ?? error) : error))

const readFiles = Effect.fnUntraced(function* (options: MigrationsOptions | undefined) {
  const directory = options?.directory ?? schemaDirectory
  const migrations = yield* readMigrations(directory)
  const functions = yield* readFunctions(directory)
  return { directory, migrations, functions } satisfies SchemaFiles
})

/** Runs before the migrations of a store that has a schema. */
const upgradeFile = "upgrade.sql"

/** The advisory lock's number, which nothing else in the database uses. */
const advisoryLock = 7_305_004_117

/** The longest wait of a statement for a lock. Every other user of that table waits behind it. */
const lockTimeoutSeconds = 3

/** Longer than any pause between tries. A migrator that is silent for longer has died and loses its turn. */
const turnIdleSeconds = 90

/**
 * Brings the schema up to date in one transaction: migrations in order, then the function files that changed. Processes
 * of the previous release see either the old schema with the old functions or the new schema with the new functions,
 * never a mixture (ADR 0158). An advisory lock lets one process try at a time. If another session keeps a table locked,
 * the migration is retried after pauses, so that the service never queues behind it for long. Returns the names of the
 * applied files.
 */
export const migrate = (
  options?: MigrationsOptions
): Effect.Effect<ReadonlyArray<string>, SchemaFailure, SqlClient> =>
  namingRefusals(migrateWith(options))

const migrateWith = Effect.fn("Migrations.migrate")(function* (
  options?: MigrationsOptions
): Effect.fn.Return<ReadonlyArray<string>, MigrationError | SqlError, SqlClient> {
  const sql = yield* SqlClient
  const files = yield* readFiles(options)
  if (yield* isUpToDate(files)) return []
  // A savepoint: rolling it back releases the locks of a failed try but keeps the turn
  const tries = sql.withTransaction(apply(files)).pipe(
    Effect.tapError((error) => (isBusy(error) ? Effect.logWarning(busyMessage) : Effect.void)),
    Effect.retry({ while: isBusy, schedule: lockedTableRetries })
  )
  return yield* sql.withTransaction(Effect.andThen(takeTurn, tries))
})

/** Only one process tries at a time, because each try blocks wallet writes while it waits for a lock (ADR 0158). */
const takeTurn = Effect.gen(function* () {
  const sql = yield* SqlClient
  // Overrides settings of the role or the database
  yield* sql`SET LOCAL statement_timeout = 0`.unprepared
  yield* sql`SET LOCAL lock_timeout = 0`.unprepared
  yield* sql.unsafe(`SET LOCAL idle_in_transaction_session_timeout = '${turnIdleSeconds}s'`)
    .unprepared
  yield* sql`SELECT pg_advisory_xact_lock(${advisoryLock})`.unprepared
})

const busyMessage = `The schema is not changed yet: another session keeps a table locked for more than ${lockTimeoutSeconds} seconds (pg_dump, VACUUM, an open transaction). It will be tried again`

/** Whether the failure is a lock timeout or a deadlock. */
const isBusy = (error: MigrationError | SqlError): boolean => {
  const cause = error._tag === "MigrationError" ? error.cause : error
  return (
    isSqlError(cause) && Option.exists(sqlState(cause), (state) => /^(?:55P03|40P01)$/u.test(state))
  )
}

/**
 * The names of the files that `migrate` would apply; empty if the store is up to date. Changes nothing. Fails if a
 * newer program has migrated the store.
 */
export const inspect = (
  options?: MigrationsOptions
): Effect.Effect<ReadonlyArray<string>, SchemaFailure, SqlClient> =>
  namingRefusals(inspectWith(options))

const inspectWith = Effect.fn("Migrations.inspect")(function* (
  options?: MigrationsOptions
): Effect.fn.Return<ReadonlyArray<string>, MigrationError | SqlError, SqlClient> {
  const files = yield* readFiles(options)
  const none: SchemaState = { migrations: [], functions: [] }
  const state = (yield* hasState) ? yield* readState : none
  yield* check(files, state)
  return [
    ...files.migrations.slice(state.migrations.length).map(({ name }) => name),
    ...changedFunctions(files.functions, state).map(labelOf)
  ]
})

/** Migrates when the layer is built. */
export const layer = (options?: MigrationsOptions): Layer.Layer<never, SchemaFailure, SqlClient> =>
  Layer.effectDiscard(migrate(options))

/**
 * Whether there is nothing to apply, so that the usual startup needs no lock. Fails for a store that `check` refuses.
 */
const isUpToDate = Effect.fnUntraced(function* (files: SchemaFiles) {
  if (!(yield* hasState)) return false
  const state = yield* readState
  yield* check(files, state)
  return (
    state.migrations.length === files.migrations.length &&
    changedFunctions(files.functions, state).length === 0
  )
})

/** Applies missing files in the caller's transaction. */
const apply = Effect.fnUntraced(function* (files: SchemaFiles) {
  const sql = yield* SqlClient
  yield* sql.unsafe(`SET LOCAL lock_timeout = '${lockTimeoutSeconds}s'`).unprepared
  yield* createState
  const state = yield* readState
  yield* check(files, state)
  const changed = changedFunctions(files.functions, state)
  const missing = files.migrations.slice(state.migrations.length)
  // Another process applied it while this one waited
  if (missing.length === 0 && changed.length === 0) return []
  if (state.migrations.length > 0) {
    yield* runFile(upgradeFile, yield* readSchemaFile(files.directory, upgradeFile))
  }
  for (const next of missing) {
    yield* runFile(next.name, next.text)
    // A table with pending deferred checks cannot be altered
    yield* sql`SET CONSTRAINTS ALL IMMEDIATE`.unprepared
    yield* recordMigration(next)
  }
  return [...missing.map(({ name }) => name), ...(yield* applyFunctions(changed))]
})

const check = Effect.fnUntraced(function* (files: SchemaFiles, state: SchemaState) {
  for (const row of state.migrations) {
    const known = files.migrations.find((migration) => migration.id === row.id)
    if (known === undefined) {
      const fault = "the database has it, this program does not"
      return yield* migrationFault(row.name, fault, "Start a newer version")
    }
    if (known.sha256 !== row.sha256 && row.id === 1) {
      const remedy =
        "Start the version that created it, export its users and balances, and start this version with a new store"
      return yield* migrationFault(row.name, "another version created this store", remedy)
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
    const remedy = "Start a newer version; a file that was reverted on purpose needs a new comment"
    return yield* migrationFault(labelOf(newer), fault, remedy)
  }
})
