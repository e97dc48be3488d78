import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as DirectConnection from "../../../src/db/DirectConnection.ts"
import { retryStore, storeFailures } from "../../../src/db/StoreFailures.ts"
import * as Hints from "../../../src/process/signals/Hints.ts"
import { startPooler } from "../../support/pooler.ts"
import type { PoolerOptions } from "../../support/pooler.ts"
import { freshDatabase } from "../../support/stores.ts"

const onDatabase = (url: URL, ...statements: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    for (const statement of statements) yield* sql.unsafe(statement).unprepared
  }).pipe(Effect.provide(layerPostgres({ url: Redacted.make(url.href) }), { local: true }))

/** A database behind a pooler, and how a start there ends. */
const behind = Effect.fnUntraced(function* (options: PoolerOptions) {
  const url = yield* freshDatabase()
  const pooler = yield* Effect.acquireDisposable(
    Effect.promise(() => startPooler(Number(url.port), options))
  )
  const far = new URL(url)
  far.port = String(pooler.port)
  const start = Effect.map(
    Layer.build(Layer.fresh(layerPostgres({ url: Redacted.make(far.href), maxConnections: 3 }))),
    () => "started"
  ).pipe(Effect.catch(({ message }) => Effect.succeed(message)))
  return { url, pooler, start, far }
})

/** docs/reference/processes.md#poolers */
describe("a pooler before Postgres", () => {
  it.live("is like Postgres itself in session mode with settings passed on", () =>
    Effect.gen(function* () {
      const { start } = yield* behind({ mode: "session", settings: "passed" })
      assert.strictEqual(yield* start, "started")
    })
  )

  it.live("is named at the start if it loses prepared statements between transactions", () =>
    Effect.gen(function* () {
      const { start } = yield* behind({ mode: "transaction", settings: "passed" })
      assert.match(
        yield* start,
        /^DATABASE_URL: the pooler at 127\.0\.0\.1:\d+ is in transaction mode.*Use its session mode, or PgBouncer 1\.21/u
      )
    })
  )

  it.live("is named with the settings if it refuses the session's settings", () =>
    Effect.gen(function* () {
      const { start } = yield* behind({ mode: "session", settings: "refused" })
      assert.match(
        yield* start,
        /^DATABASE_URL: the pooler at .* refuses the settings.*enable_seqscan.*ignore_startup_parameters/u
      )
    })
  )

  it.live("needs the settings at the role or the database if it ignores them", () =>
    Effect.gen(function* () {
      const { start, url } = yield* behind({ mode: "session", settings: "ignored" })
      assert.match(
        yield* start,
        /has not passed on.*ALTER ROLE "postgres" SET enable_seqscan = off/u
      )
      const name = url.pathname.slice(1)
      yield* onDatabase(
        url,
        `ALTER DATABASE ${name} SET enable_seqscan = off`,
        `ALTER DATABASE ${name} SET jit = off`,
        `ALTER DATABASE ${name} SET idle_in_transaction_session_timeout = '10s'`
      )
      assert.strictEqual(yield* start, "started")
    })
  )
})

describe("a pooler in session mode with too few server connections", () => {
  for (const [exhausted, why] of [
    ["waits", /no response: .*a pooler in session mode has too few server connections/u],
    [
      "waits after its login",
      /no response: .*a pooler in session mode has too few server connections/u
    ],
    ["query_wait_timeout", /a pooler in session mode has too few server connections/u],
    ["no more connections allowed", /accepts no more connections/u]
  ] as const) {
    it.live(`is named when a connection ${exhausted}, and its mode is not blamed`, () =>
      Effect.gen(function* () {
        const { far } = yield* behind({
          mode: "session",
          settings: "passed",
          serversMax: 1,
          exhausted
        })
        const lines: Array<string> = []
        const logger = Logger.make(({ message }) => {
          lines.push(String(Array.isArray(message) ? message[0] : message))
        })
        const url = Redacted.make(`${far.href}?connect_timeout=2`)
        const processLayer = Hints.layer.pipe(
          Layer.provide(DirectConnection.layer(url)),
          Layer.provideMerge(layerPostgres({ url, maxConnections: 1 })),
          Layer.provide(Logger.layer([logger]))
        )
        yield* Effect.gen(function* () {
          // Longer than the waits for a statement and a notification
          yield* Effect.sleep("6 seconds")
          const lost = lines.filter((line) => line.startsWith("The direct connection is lost"))
          assert.lengthOf(lost, 1)
          assert.match(lost[0] ?? "", why)
          assert.deepStrictEqual(
            lines.filter((line) => line.includes("transaction mode")),
            []
          )
        }).pipe(Effect.provide(processLayer))
      })
    )
  }
})

describe("a Postgres that is starting", () => {
  it.live("delays the start, and the log says so once", () =>
    Effect.gen(function* () {
      const { pooler, start } = yield* behind({ mode: "session", settings: "passed" })
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      pooler.state.isStarting = true
      const isOver = Effect.sync(() => (pooler.state.isStarting = false))
      yield* Effect.forkChild(Effect.delay(isOver, "1500 millis"))
      const ended = yield* Effect.provide(start, Logger.layer([logger]))
      assert.strictEqual(ended, "started")
      assert.isAbove(pooler.state.clients, 3)
      assert.deepStrictEqual(lines, [
        `Postgres at 127.0.0.1:${pooler.port} accepts no connections now; waiting for it`
      ])
    })
  )
})

describe("a prepared statement that the server has lost", () => {
  const database = Layer.unwrap(
    Effect.map(freshDatabase(), (url) =>
      layerPostgres({ url: Redacted.make(url.href), maxConnections: 1 })
    )
  ).pipe(Layer.orDie)

  it.live("is prepared again, and its transaction is repeated", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`CREATE TABLE counted (id int PRIMARY KEY, n int NOT NULL)`
      yield* sql`INSERT INTO counted VALUES (1, 0), (2, 0)`
      const add = (id: number) => sql`UPDATE counted SET n = n + 1 WHERE id = ${id}`
      const both = Effect.gen(function* () {
        yield* add(1)
        yield* sql`SELECT n FROM counted WHERE id = 2`
        return yield* add(2)
      })
      yield* both
      for (const lose of ["DEALLOCATE ALL", "DISCARD ALL"]) {
        yield* sql.unsafe(lose).unprepared
        yield* storeFailures(both)
        yield* sql.unsafe(lose).unprepared
        yield* storeFailures(sql.withTransaction(both))
      }
      assert.deepStrictEqual(yield* sql`SELECT n FROM counted ORDER BY id`, [{ n: 5 }, { n: 5 }])
    }).pipe(Effect.provide(database))
  )

  it.live("is prepared again if only the end of the transaction is lost", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`CREATE TABLE ended (n int NOT NULL)`
      yield* sql`INSERT INTO ended VALUES (0)`
      yield* sql.withTransaction(sql`UPDATE ended SET n = n + 1`)
      yield* Effect.flip(sql.withTransaction(Effect.fail("rolled back")))
      yield* sql.unsafe("DISCARD ALL").unprepared
      yield* sql.withTransaction(sql`UPDATE ended SET n = n + 10`)
      yield* sql.unsafe("DISCARD ALL").unprepared
      yield* Effect.flip(sql.withTransaction(Effect.andThen(sql`SELECT 1`, Effect.fail("again"))))
      assert.deepStrictEqual(yield* sql`SELECT n FROM ended`, [{ n: 11 }])
    }).pipe(Effect.provide(database))
  )

  it.live("is prepared again with a savepoint after a migration has changed its columns", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`CREATE TABLE grown (id int PRIMARY KEY)`
      yield* sql`INSERT INTO grown VALUES (1)`
      const read = sql`SELECT * FROM grown`
      yield* read
      yield* sql.unsafe("ALTER TABLE grown ADD more int DEFAULT 7").unprepared
      const inner = sql.withTransaction(Effect.andThen(sql`UPDATE grown SET id = id + 1`, read))
      const rows = yield* retryStore(storeFailures(sql.withTransaction(inner)))
      assert.deepStrictEqual(rows, [{ id: 2, more: 7 }])
    }).pipe(Effect.provide(database))
  )
})
