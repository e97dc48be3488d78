import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { createHash } from "node:crypto"
import { readFile, readdir } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { splitStatements } from "./SqlStatements.ts"

/** The schema cannot be brought to this program's state; the message says what to do. */
export class MigrationError extends Schema.TaggedError<MigrationError>()("MigrationError", {
  migration: Schema.String,
  fault: Schema.String,
  remedy: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    return `Migration ${this.migration}: ${this.fault}. ${this.remedy}.`
  }
}

export interface MigrationsOptions {
  /** Folder of `NNNN_name.sql` files; by default `schema/migrations` of this program. */
  readonly directory?: URL
}

/** One file: applied once, in one transaction, never changed afterwards. */
interface Migration {
  readonly id: number
  readonly name: string
  readonly sha256: string
  readonly text: string
}

const Applied = Schema.Array(
  Schema.Struct({ id: Schema.Int, name: Schema.String, sha256: Schema.String })
)
type Applied = typeof Applied.Type

/** Any number that nothing else in the database uses as an advisory lock. */
const advisoryLock = 7_305_004_117

const schemaDirectory = new URL("../../schema/migrations/", import.meta.url)
const fileName = /^(\d{4})_([a-z0-9_]+)\.sql$/

/**
 * Applies what is missing, in order, each file in a transaction of its own under an advisory lock,
 * so that processes that start at once do it once. Answers the names that this call applied.
 */
export const migrate = Effect.fn("Migrations.migrate")(function* (
  options?: MigrationsOptions
): Effect.fn.Return<ReadonlyArray<string>, MigrationError | SqlError, SqlClient> {
  const sql = yield* SqlClient
  const migrations = yield* load(options)
  const done: Array<string> = []
  if (yield* isUpToDate(migrations)) return done
  for (const migration of migrations) {
    const applied = yield* sql.withTransaction(applyOne(migrations, migration))
    if (applied) done.push(migration.name)
  }
  return done
})

/** Migrates when the layer is built. */
export const layer = (
  options?: MigrationsOptions
): Layer.Layer<never, MigrationError | SqlError, SqlClient> => Layer.effectDiscard(migrate(options))

/** The usual start needs no lock: everything is there. Faults are found here too. */
const isUpToDate = Effect.fnUntraced(function* (migrations: ReadonlyArray<Migration>) {
  const sql = yield* SqlClient
  const [table] = yield* sql`SELECT to_regclass('schema_migrations') IS NOT NULL AS found`.values
  if (table?.[0] !== true) return false
  const applied = yield* readApplied
  yield* check(migrations, applied)
  return applied.length === migrations.length
})

const applyOne = Effect.fnUntraced(function* (
  migrations: ReadonlyArray<Migration>,
  migration: Migration
) {
  const sql = yield* SqlClient
  // Whatever the role or the database is set to
  yield* sql`SET LOCAL statement_timeout = 0`.unprepared
  yield* sql`SELECT pg_advisory_xact_lock(${advisoryLock})`.unprepared
  yield* sql`CREATE TABLE IF NOT EXISTS schema_migrations (
    id int PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL
  )`.unprepared
  const applied = yield* readApplied
  yield* check(migrations, applied)
  if (applied.some((row) => row.id === migration.id)) return false
  for (const [index, statement] of splitStatements(migration.text).entries()) {
    yield* Effect.mapError(
      sql.unsafe(statement).unprepared,
      (error) =>
        new MigrationError({
          migration: migration.name,
          fault: `statement ${index + 1} fails (${causeMessage(error)})`,
          remedy: "Nothing of this file was applied; correct it and start again",
          cause: error
        })
    )
  }
  const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  yield* sql`INSERT INTO schema_migrations (id, name, sha256, applied_at)
    VALUES (${migration.id}, ${migration.name}, ${migration.sha256}, ${new Date(now)})`.unprepared
  return true
})

const causeMessage = (error: SqlError): string =>
  error.reason.cause instanceof Error ? error.reason.cause.message : error.message

const readApplied = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql`SELECT id, name, sha256 FROM schema_migrations ORDER BY id`.unprepared
  return yield* Effect.mapError(
    Schema.decodeUnknownEffect(Applied)(rows),
    (cause) =>
      new MigrationError({
        migration: "schema_migrations",
        fault: "the table of applied migrations has rows of an unknown shape",
        remedy: "Point the program at its own database",
        cause
      })
  )
})

const check = (migrations: ReadonlyArray<Migration>, applied: Applied) => {
  for (const row of applied) {
    const known = migrations.find((migration) => migration.id === row.id)
    if (known === undefined) {
      return fault(row.name, "the database has it, this program does not", "Start a newer version")
    }
    if (known.sha256 !== row.sha256) {
      const remedy = "Restore the file and put the change into a new migration"
      return fault(known.name, "its file was changed after it was applied", remedy)
    }
  }
  const last = applied.at(-1)?.id ?? 0
  const skipped = migrations.find(
    (migration) => migration.id < last && !applied.some((row) => row.id === migration.id)
  )
  return skipped === undefined
    ? Effect.void
    : fault(skipped.name, "a later one is applied already", "Give it the next free number")
}

const fault = (migration: string, fault: string, remedy: string) =>
  Effect.fail(new MigrationError({ migration, fault, remedy }))

const load = Effect.fnUntraced(function* (options: MigrationsOptions | undefined) {
  const directory = options?.directory ?? schemaDirectory
  const names = yield* read(fileURLToPath(directory), async () =>
    (await readdir(directory)).filter((name) => name.endsWith(".sql")).sort()
  )
  const migrations: Array<Migration> = []
  for (const file of names) {
    const id = Number(fileName.exec(file)?.[1])
    const expected = migrations.length + 1
    if (id !== expected) {
      const remedy = "Number the files 0001_name.sql, 0002_name.sql and so on"
      return yield* fault(file, `it should have the number ${expected}`, remedy)
    }
    const text = yield* read(file, () => readFile(new URL(file, withSlash(directory)), "utf8"))
    const sha256 = createHash("sha256").update(text).digest("hex")
    migrations.push({ id, name: file.slice(0, -".sql".length), sha256, text })
  }
  return migrations
})

const withSlash = (directory: URL): URL =>
  directory.pathname.endsWith("/") ? directory : new URL(`${directory.href}/`)

const read = <A>(what: string, promise: () => Promise<A>) =>
  Effect.tryPromise({
    try: promise,
    catch: (cause) =>
      new MigrationError({
        migration: what,
        fault: "it cannot be read",
        remedy: "Install the program with its schema folder",
        cause
      })
  })
