import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { layerPostgres } from "../../../src/db/Database.ts"
import { storeFailures } from "../../../src/db/StoreFailures.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { describeStores, freshDatabase } from "../../support/stores.ts"

const reasonOf = <A, R>(effect: Effect.Effect<A, SqlError, R>) =>
  Effect.map(Effect.orDie(Effect.flip(effect)), (error) => error.reason._tag as string)

describeStores("the store", (database, store) => {
  liveLayer(database)((it) => {
    it.effect("returns values as they were written", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* sql`CREATE TABLE round_trip (
          big_number bigint, small_number int, is_set boolean, some_text text, some_bytes bytea,
          happened_at timestamptz, some_json jsonb, some_id uuid, some_list text[], exact numeric)`
        const row = {
          bigNumber: 9_007_199_254_740_993n,
          smallNumber: -1,
          isSet: true,
          someText: "żółw 🐢 'quoted' \\ $1",
          someBytes: Uint8Array.of(0, 1, 255),
          happenedAt: new Date("2026-02-03T04:05:06.789Z"),
          someId: "0198c0de-0000-7000-8000-000000000001",
          someList: ["a", 'b,"c"'],
          exact: "1000.10"
        }
        const someJson = { snake_case: 1, camelCase: { innerKey: [null, "x"] } }
        yield* sql`INSERT INTO round_trip ${sql.insert({ ...row, someJson: sql.json(someJson) })}`
        const [found] = yield* sql`SELECT * FROM round_trip`
        assert.deepStrictEqual(found, { ...row, someJson })
        assert.isFalse(Buffer.isBuffer(found?.someBytes))
        const [nulls] = yield* sql`SELECT null::bigint AS no_number, null::jsonb AS no_json`
        assert.deepStrictEqual(nulls, { noNumber: null, noJson: null })
      })
    )

    it.effect("rolls back a failed transaction or savepoint completely", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE things (id int PRIMARY KEY)`
        const failing = sql.withTransaction(
          Effect.andThen(sql`INSERT INTO things VALUES (1)`, Effect.fail("stop" as const))
        )
        assert.strictEqual(yield* Effect.flip(failing), "stop")
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`INSERT INTO things VALUES (2)`
            yield* Effect.ignore(sql.withTransaction(sql`INSERT INTO things VALUES (3), (2)`))
            yield* sql`INSERT INTO things VALUES (4)`
          })
        )
        const ids = yield* sql`SELECT id FROM things ORDER BY id`
        assert.deepStrictEqual(
          ids.map((row) => row.id),
          [2, 4]
        )
      })
    )

    it.effect("refuses every statement after an error in a transaction, including COMMIT", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const swallowed = sql.withTransaction(
          Effect.gen(function* () {
            yield* Effect.ignore(sql`SELECT 1/0`)
            assert.strictEqual(yield* reasonOf(sql`SELECT 1`), "UnknownError")
          })
        )
        const error = yield* Effect.flip(swallowed)
        assert.strictEqual(error.reason.operation, "commit")
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
      })
    )

    it.effect("classifies errors", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE classes (id int PRIMARY KEY, n int CHECK (n > 0) NOT NULL,
          CONSTRAINT classes_n_unique UNIQUE (n))`
        yield* sql`INSERT INTO classes VALUES (1, 1)`
        const unique = yield* Effect.flip(sql`INSERT INTO classes VALUES (2, 1)`)
        assert.strictEqual(unique.reason._tag, "UniqueViolation")
        assert.propertyVal(unique.reason, "constraint", "classes_n_unique")
        assert.strictEqual(
          yield* reasonOf(sql`INSERT INTO classes VALUES (3, ${-1})`),
          "ConstraintError"
        )
        assert.strictEqual(yield* reasonOf(sql`SELECT nothing`), "SqlSyntaxError")
        assert.strictEqual(yield* reasonOf(sql`SELEKT 1`), "SqlSyntaxError")
        assert.strictEqual(yield* reasonOf(sql`SELECT 1/0`), "UnknownError")
        yield* sql`CREATE FUNCTION conflict() RETURNS void LANGUAGE plpgsql AS $$
          BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$`
        assert.strictEqual(yield* reasonOf(sql`SELECT conflict()`), "SerializationError")
      })
    )

    it.effect("distinguishes errors that end when the server recovers from permanent ones", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE FUNCTION fail(state text) RETURNS void LANGUAGE plpgsql AS $$
          BEGIN RAISE EXCEPTION 'x' USING ERRCODE = state; END $$`
        const outcome = (state: string) =>
          sql`SELECT fail(${state})`.pipe(
            storeFailures,
            Effect.as("done"),
            Effect.catchTag("StoreUnavailable", () => Effect.succeed("transient")),
            Effect.catchDefect(() => Effect.succeed("defect"))
          )
        // Disk full, a standby, shutting down, an I/O error, a deadlock
        for (const state of ["53100", "25006", "57P01", "58030", "40P01"]) {
          assert.strictEqual(yield* outcome(state), "transient", state)
        }
        // An unreadable value, a constraint, an aborted transaction
        for (const state of ["22P02", "23514", "25P02"]) {
          assert.strictEqual(yield* outcome(state), "defect", state)
        }
      })
    )

    it.effect("writes and reads a megabyte, alone and among many parameters", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE blobs (id int PRIMARY KEY, body bytea)`
        const body = new Uint8Array(1024 * 1024).map((_, index) => index * 31)
        for (let id = 0; id < 4; id++) yield* sql`INSERT INTO blobs VALUES (${id}, ${body})`
        const rows = yield* sql`SELECT body FROM blobs`
        assert.strictEqual(rows.length, 4)
        for (const row of rows) assert.isTrue(Buffer.from(row.body as Uint8Array).equals(body))
      })
    )

    it.effect("returns a hundred thousand rows, whole and streamed", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const query = sql`SELECT n, repeat('x', 50) AS text FROM generate_series(1, 100000) AS n`
        assert.strictEqual((yield* query).length, 100_000)
        assert.strictEqual(yield* Stream.runCount(query.stream), 100_000)
        assert.strictEqual(yield* query.stream.pipe(Stream.take(3), Stream.runCount), 3)
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
      })
    )

    it.effect("loses no update of fifty concurrent fibers", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE counters (id int PRIMARY KEY, n bigint NOT NULL)`
        yield* sql`INSERT INTO counters VALUES (1, 0)`
        const increment = sql.withTransaction(
          Effect.gen(function* () {
            const [row] = yield* sql`SELECT n FROM counters WHERE id = 1 FOR UPDATE`
            yield* Effect.yieldNow
            yield* sql`UPDATE counters SET n = ${(row?.n as bigint) + 1n} WHERE id = 1`
          })
        )
        yield* Effect.all(
          Array.from({ length: 50 }, () => increment),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(yield* sql`SELECT n FROM counters`, [{ n: 50n }])
      })
    )

    it.effect("stays usable after a fiber is interrupted, and rolls back its transaction", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE interrupted (id int)`
        for (let round = 0; round < 30; round++) {
          const fiber = yield* Effect.forkChild(
            sql.withTransaction(
              Effect.gen(function* () {
                yield* sql`INSERT INTO interrupted VALUES (${round})`
                for (;;) {
                  yield* sql`SELECT count(*) FROM generate_series(1, 5000)`
                  yield* Effect.yieldNow
                }
              })
            )
          )
          yield* Effect.sleep(round % 5)
          yield* Fiber.interrupt(fiber)
        }
        assert.deepStrictEqual(yield* sql`SELECT count(*) AS n FROM interrupted`, [{ n: 0n }])
      })
    )

    if (store === "postgres") {
      it.effect("replaces a connection that the server ends", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          yield* Effect.exit(sql`SELECT pg_terminate_backend(pg_backend_pid())`)
          assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
        })
      )

      it.effect("releases the locks of a process that stops responding in a transaction", () =>
        Effect.gen(function* () {
          const url = Redacted.make((yield* freshDatabase()).href)
          const client = (options: { readonly idleTransactionMillis?: number } = {}) =>
            Effect.map(Layer.build(layerPostgres({ url, ...options })), Context.get(SqlClient))
          const sql = yield* client()
          yield* sql`CREATE TABLE locked AS SELECT 1 AS n`
          const [usual] = yield* sql`SHOW idle_in_transaction_session_timeout`
          assert.deepStrictEqual(usual, { idleInTransactionSessionTimeout: "10s" })
          const silent = yield* client({ idleTransactionMillis: 300 })
          const isLocked = yield* Deferred.make<void>()
          const isWritten = yield* Deferred.make<void>()
          const first = yield* Effect.forkChild(
            Effect.andThen(
              silent`UPDATE locked SET n = 2`,
              Deferred.succeed(isLocked, undefined)
            ).pipe(
              Effect.andThen(Deferred.await(isWritten)),
              silent.withTransaction,
              storeFailures,
              Effect.exit
            )
          )
          yield* Deferred.await(isLocked)
          yield* sql`UPDATE locked SET n = n + 2`
          yield* Deferred.succeed(isWritten, undefined)
          const exit = yield* Fiber.join(first)
          assert.strictEqual(
            Option.getOrUndefined(Exit.findErrorOption(exit))?._tag,
            "StoreUnavailable"
          )
          assert.deepStrictEqual(yield* sql`SELECT n FROM locked`, [{ n: 3 }])
        }).pipe(Effect.scoped)
      )
    }

    it.effect("takes back the connection of a stream that ends early", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const query = sql`SELECT n FROM generate_series(1, 50000) AS n`
        for (let round = 0; round < 10; round++) {
          const fiber = yield* Effect.forkChild(Stream.runDrain(query.stream))
          yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
        }
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
      })
    )
  })
})
