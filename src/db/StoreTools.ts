import { DateTime, Effect, Option, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { statSync } from "node:fs"
import { join } from "node:path"
import { AppConfig } from "../config/Config.ts"
import { cutRestore } from "./CutRestore.ts"
import * as Database from "./Database.ts"
import { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import * as Migrations from "./Migrations.ts"
import { rowOf, rowsOf, Time } from "./Rows.ts"
import { hasState } from "./SchemaState.ts"
import { storeFailures } from "./StoreFailures.ts"
import { markStore } from "./StoreMark.ts"
import { storeTrouble } from "./StoreTrouble.ts"

/** The configured store over one connection, for short-lived tools. */
const connection = Effect.map(AppConfig, ({ dataDir, database }) =>
  database._tag === "Embedded"
    ? Database.layerEmbedded({ dataDir, durable: database.durable })
    : Database.layerPostgres({ url: database.url, timeouts: "endless", maxConnections: 1 })
)

/** The name of the store in messages, without secrets. */
export const nameOfStore = Effect.flatMap(AppConfig, ({ dataDir, database }) =>
  database._tag === "Embedded"
    ? Effect.succeed(`the embedded store in ${dataDir}`)
    : Effect.map(
        Database.addressOf(database.url),
        ({ database: name, host, port }) => `the database ${name} at ${host}:${port}`
      )
)

/**
 * Applies the missing migrations and changed functions. Several processes may do so at once: an advisory lock ensures
 * that each step runs once. Refuses an embedded store that is in use, because the process that uses it has migrated it.
 */
export const migrateStore = Effect.gen(function* () {
  const store = yield* nameOfStore
  const applied = yield* Effect.provide(Migrations.migrate(), yield* connection)
  return { store, applied }
})

/** Whether the folder has no embedded store. False for a folder that this user may not read. */
export const hasNoStore = (dataDir: string): boolean => {
  try {
    return statSync(join(dataDir, "postgres"), { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

/** Whether opening the folder would create a store. */
export const opensNewStore = (dataDir: string): boolean =>
  hasNoStore(dataDir) && cutRestore(dataDir) === undefined

/** Fails if the configured store contains no gateway. Creates none, because it would prevent a restore. */
export const requireGateway = Effect.fnUntraced(function* (remedy: string) {
  const { dataDir, database } = yield* AppConfig
  const isEmbedded = database._tag === "Embedded"
  const found = Effect.provide(Migrations.namingRefusals(hasState), yield* connection)
  if (!(isEmbedded && opensNewStore(dataDir)) && (yield* found)) return
  return yield* new DatabaseUnavailable({
    variable: isEmbedded ? "DATA_DIR" : "DATABASE_URL",
    fault: `${yield* nameOfStore} contains no gateway`,
    remedy
  })
})

/**
 * Marks the store as restored to an earlier time, and migrates it first if it is older. `allowsSubmits`: the operator
 * knows that nothing was submitted after that time. docs/standbys.md#after-a-restore
 */
export const markRestoredStore = Effect.fnUntraced(function* (allowsSubmits: boolean) {
  const store = yield* nameOfStore
  yield* requireGateway("Restore a backup into it first")
  const marked = Effect.gen(function* () {
    yield* Migrations.migrate()
    return yield* markStore({ by: "gateway store mark-restored", now: null, allowsSubmits })
  })
  const mark = yield* Effect.provide(Migrations.namingRefusals(marked), yield* connection)
  // Without a process, a mark is always written and returned
  return { store, mark: Option.getOrThrow(mark) }
})

const Session = Schema.Struct({
  now: Time,
  mayMigrate: Schema.Boolean,
  mayWrite: Schema.Boolean
})

/**
 * Writes as a process does, and to a separate file, and rolls back. Returns why the store accepts no writes, if it does
 * not.
 */
const tryToWrite = Effect.fnUntraced(function* (sql: SqlClient) {
  const write = Effect.gen(function* () {
    yield* sql`CREATE TEMPORARY TABLE gateway_doctor (n integer) ON COMMIT DROP`
    yield* sql`INSERT INTO gateway_doctor VALUES (1)`
    yield* sql`
      INSERT INTO processes (id, started_at, heartbeat_at) VALUES ('doctor', '-infinity', '-infinity')`
    return yield* new Undone()
  })
  return yield* sql.withTransaction(write).pipe(
    storeFailures,
    Effect.catchTags({
      Undone: () => Effect.succeedNone,
      StoreUnavailable: (failure) => Effect.succeedSome(storeTrouble(failure))
    })
  )
})

class Undone extends Schema.TaggedError<Undone>()("Undone", {}) {}

const newestMark = Effect.flatMap(
  SqlClient,
  (sql) => sql`
    SELECT restored_at, (SELECT count(*)::int FROM runs WHERE in_doubt) AS tasks_in_doubt
    FROM store_marks ORDER BY restored_at DESC LIMIT 1`
).pipe(
  rowsOf(Schema.Struct({ restoredAt: Time, tasksInDoubt: Schema.Int })),
  Effect.map((rows) => Option.fromUndefinedOr(rows[0]))
)

/** The id of the process that ended last, or has sent the newest heartbeat. */
const newestProcess = Effect.flatMap(
  SqlClient,
  (sql) => sql`SELECT id FROM processes ORDER BY greatest(heartbeat_at, left_at) DESC LIMIT 1`
).pipe(
  rowsOf(Schema.Struct({ id: Schema.String })),
  Effect.map((rows) => Option.fromUndefinedOr(rows[0]?.id))
)

/**
 * Reports what `migrateStore` would apply, whether the role may create tables and write tasks, why the store accepts no
 * writes now (if so), which process used it last, and how far this machine's clock is ahead of the store's. Changes
 * nothing.
 */
export const inspectStore = Effect.gen(function* () {
  const pending = yield* Migrations.inspect()
  const sql = yield* SqlClient
  const before = DateTime.toEpochMillis(yield* DateTime.now)
  const { now, ...rights } = yield* sql`
    SELECT clock_timestamp() AS now,
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_migrate,
      coalesce(has_table_privilege(to_regclass('tasks')::oid, 'INSERT'), true) AS may_write`.pipe(
    rowOf(Session)
  )
  const after = DateTime.toEpochMillis(yield* DateTime.now)
  const skewMillis = (before + after) / 2 - DateTime.toEpochMillis(now)
  const isComplete = pending.length === 0 && rights.mayMigrate && rights.mayWrite
  const trouble = isComplete ? yield* tryToWrite(sql) : Option.none<string>()
  // A schema that must still be migrated may not have the tables yet
  const isCurrent = pending.length === 0
  const restored = isCurrent ? yield* newestMark : Option.none()
  const lastProcess = isCurrent ? yield* newestProcess : Option.none()
  return { pending, ...rights, restored, lastProcess, skewMillis, trouble }
}).pipe((report) => Effect.flatMap(connection, (store) => Effect.provide(report, store)))
