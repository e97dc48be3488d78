import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { retryStore, storeFailures } from "../../../src/db/StoreFailures.ts"
import type { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { startSilentProxy } from "../../support/silentProxy.ts"
import type { Swallows } from "../../support/silentProxy.ts"
import { freshDatabase, migratedDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import {
  accept,
  breaches,
  credits,
  finish,
  newWallet,
  walletStores
} from "../../support/wallets.ts"

/** ADR 0124: a silent network makes the store unavailable; statements are retried. */

const timeouts = { statementMillis: 1000, silenceMillis: 1500 }
const connections = 4

/** A migrated Postgres, a direct client, and a client behind a proxy that can drop all data. */
const behindNetwork = Effect.gen(function* () {
  const url = yield* migratedDatabaseUrl
  const near = yield* Layer.build(layerPostgres({ url: Redacted.make(url.href) }))
  const network = yield* Effect.acquireDisposable(
    Effect.promise(() => startSilentProxy(Number(url.port)))
  )
  const far = new URL(url)
  far.port = String(network.port)
  const options = { timeouts, maxConnections: connections, idleTransactionMillis: 1000 }
  const database = layerPostgres({ url: Redacted.make(far.href), ...options })
  return {
    near: Context.get(near, SqlClient),
    network,
    store: Layer.provideMerge(walletStores, database)
  }
}).pipe(Effect.orDie)

/** As many queries at once as there are connections, so that all are open. */
const onAll = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.replicateEffect(effect, connections, { concurrency: "unbounded" })

const isThere = (is: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (is() ? Effect.void : Effect.delay(isThere(is), 10)))

describe("a Postgres that stops responding", { timeout: 60_000 }, () => {
  it.live(
    "is unavailable for all queries, including those that wait for a connection, until it responds again",
    () =>
      Effect.gen(function* () {
        const { network, store } = yield* behindNetwork
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient
          const ask = storeFailures(sql`SELECT 1 AS one`)
          yield* onAll(storeFailures(sql`SELECT pg_sleep(0.1)`))
          network.swallow("all")
          const asked = Effect.replicateEffect(Effect.flip(ask), 40, { concurrency: "unbounded" })
          for (const { _tag } of yield* asked) assert.strictEqual(_tag, "StoreUnavailable")
          // No query waits for a store that is known to be silent
          network.swallow("nothing")
          assert.deepStrictEqual(yield* retryStore(ask), [{ one: 1 }])
        }).pipe(Effect.provide(store))
      }).pipe(Effect.scoped)
  )

  it.live("commits nothing of a transaction, whose connection is not used again", () =>
    Effect.gen(function* () {
      const { near, network, store } = yield* behindNetwork
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* near`CREATE TABLE written (n int)`
        yield* onAll(storeFailures(sql`SELECT pg_sleep(0.1)`))
        const cut = Effect.gen(function* () {
          yield* sql`INSERT INTO written VALUES (1)`
          yield* Effect.sync(() => network.swallow("all"))
          yield* sql`INSERT INTO written VALUES (2)`
        })
        const failure = yield* Effect.flip(storeFailures(sql.withTransaction(cut)))
        assert.strictEqual(failure._tag, "StoreUnavailable")
        network.swallow("nothing")
        const open = sql`
          SELECT pg_current_xact_id_if_assigned() IS NOT NULL AS open, pg_sleep(0.1)`
        for (const rows of yield* onAll(retryStore(storeFailures(open)))) {
          assert.isFalse(rows[0]?.["open"])
        }
        assert.deepStrictEqual(yield* near`SELECT n FROM written`, [])
      }).pipe(Effect.provide(store))
    }).pipe(Effect.scoped)
  )

  it.effect("an unused connection that was closed does not make the store unavailable", () =>
    Effect.gen(function* () {
      // The clock of the pool stands still, so it closes nothing
      const { near, store } = yield* behindNetwork
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        const [own] = yield* sql`SELECT pg_backend_pid() AS pid`
        const isOpen = near`SELECT 1 FROM pg_stat_activity WHERE pid = ${own?.["pid"]}`
        yield* Effect.repeat(isOpen, { until: (rows) => rows.length === 0 })
        assert.deepStrictEqual(yield* storeFailures(sql`SELECT 1 AS one`), [{ one: 1 }])
      }).pipe(Effect.provide(store))
    }).pipe(Effect.scoped)
  )

  it.live(
    "a statement that takes too long is ended by the server, and its connection stays usable",
    () =>
      Effect.gen(function* () {
        const { near, store } = yield* behindNetwork
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient
          const failure = yield* Effect.flip(storeFailures(sql`SELECT pg_sleep(600)`))
          assert.strictEqual(failure._tag, "StoreUnavailable")
          assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
        }).pipe(Effect.provide(store))
        assert.deepStrictEqual(yield* near`SHOW statement_timeout`, [{ statementTimeout: "30s" }])
      }).pipe(Effect.scoped)
  )

  it.live("a long migration is not ended", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase()
      const folder = temporaryFolder("slow")
      const slow = "SELECT pg_sleep(1.5);\nCREATE TABLE made (n int);\n"
      yield* Effect.promise(async () => {
        for (const part of ["migrations", "functions"]) await mkdir(join(folder, part))
        await writeFile(join(folder, "migrations", "0001_slow.sql"), slow)
      })
      const patient = layerPostgres({ url: Redacted.make(url.href), timeouts: "endless" })
      const near = Context.get(yield* Layer.build(patient), SqlClient)
      yield* near.unsafe(`ALTER DATABASE ${url.pathname.slice(1)} SET statement_timeout = '1s'`)
      // A separate connection to which the setting applies
      const applied = yield* Effect.provide(
        Migrations.migrate({ directory: pathToFileURL(folder) }),
        layerPostgres({ url: Redacted.make(url.href), timeouts: "endless" }),
        { local: true }
      )
      assert.deepStrictEqual(applied, ["0001_slow"])
    }).pipe(Effect.scoped)
  )

  it.live(
    "a wallet change in the meantime happens once, whether the request or the response was lost",
    () =>
      Effect.gen(function* () {
        const { network, store } = yield* behindNetwork
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient
          const wallets = yield* WalletStore
          const userId = yield* newWallet(1000)
          const now = yield* DateTime.now
          let away = 0
          const surely = <A, R>(effect: Effect.Effect<A, StoreUnavailable, R>) =>
            retryStore(Effect.tapError(effect, () => Effect.sync(() => (away += 1))))
          let added = 0
          let captured = 0
          for (const [round, what] of (
            ["responses", "requests", "all", "responses"] satisfies ReadonlyArray<Swallows>
          ).entries()) {
            const tasks = yield* Effect.replicateEffect(accept(userId, 10), connections)
            yield* onAll(storeFailures(sql`SELECT pg_sleep(0.1)`))
            away = 0
            network.swallow(what)
            const paying = yield* Effect.forkChild(
              Effect.all(
                [
                  ...tasks.map(({ taskId }) => surely(finish(taskId, 7))),
                  ...tasks.map((_, n) =>
                    surely(
                      wallets.add({
                        userId,
                        kind: "top_up",
                        amount: credits(1),
                        operationId: `top_up:${round}:${n}`,
                        note: null,
                        traceId: "",
                        now
                      })
                    )
                  )
                ],
                { concurrency: "unbounded" }
              )
            )
            yield* isThere(() => away >= tasks.length)
            network.swallow("nothing")
            yield* Fiber.join(paying)
            added += tasks.length
            captured += 7 * tasks.length
          }
          const wallet = Option.getOrThrow(yield* surely(wallets.find(userId)))
          assert.deepInclude(wallet, {
            settled: credits(1000 + added - captured),
            held: credits(0)
          })
          assert.strictEqual(yield* surely(storeFailures(breaches)), 0)
          const page = { after: Option.none(), wallets: 10, entries: 1000, now }
          yield* surely(wallets.audit(page))
          assert.strictEqual(yield* surely(wallets.drift), 0)
        }).pipe(Effect.provide(store))
      }).pipe(Effect.scoped)
  )
})
