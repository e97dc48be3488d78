import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import { layerEmbedded } from "../../../src/db/Database.ts"
import { migratedTemplate } from "../../../src/testing/StoreTemplates.ts"
import { compileCache, compiled, shortLived } from "../../support/compiled.ts"
import { prepareDataDir } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const folder = Effect.sync(() => temporaryFolder("embedded"))

/** Replaces `fsyncSync` until the scope closes; `fail` makes it fail. */
const watchedFsync = Effect.acquireRelease(
  Effect.sync(() => {
    const real = fs.fsyncSync
    const watch = { calls: 0, fail: false, restore: () => {} }
    fs.fsyncSync = (descriptor) => {
      watch.calls += 1
      if (watch.fail) throw Object.assign(new Error("EIO: i/o error, fsync"), { code: "EIO" })
      return real(descriptor)
    }
    syncBuiltinESMExports()
    watch.restore = () => {
      fs.fsyncSync = real
      syncBuiltinESMExports()
    }
    return watch
  }),
  (watch) => Effect.sync(watch.restore)
)

const onFolder = (dataDir: string, durable = true) =>
  Effect.provide(
    Layer.unwrap(
      Effect.map(migratedTemplate, (template) => layerEmbedded({ dataDir, durable, template }))
    ),
    { local: true }
  )

describe("the embedded store in a folder", () => {
  it.live("has every acknowledged commit on the disk, and never acknowledges a failed fsync", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const watch = yield* watchedFsync
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE kept (id int)`
        const before = watch.calls
        for (let id = 0; id < 20; id++) yield* sql`INSERT INTO kept VALUES (${id})`
        assert.isAtLeast(watch.calls - before, 20)
        const read = watch.calls
        yield* sql`SELECT * FROM kept`
        assert.strictEqual(watch.calls, read)
        watch.fail = true
        const error = yield* Effect.flip(sql`INSERT INTO kept VALUES (99)`)
        assert.strictEqual(error.reason._tag, "ConnectionError")
        watch.fail = false
        assert.isTrue((yield* Effect.exit(sql`SELECT 1`))._tag === "Failure", "it stays refused")
      }).pipe(onFolder(path))
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        const rows = yield* sql`SELECT count(*) AS n FROM kept WHERE id < 20`
        assert.deepStrictEqual(rows, [{ n: 20n }])
      }).pipe(onFolder(path))
    })
  )

  it.live("does not fsync without durability", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const watch = yield* watchedFsync
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE kept (id int)`
        yield* sql`INSERT INTO kept VALUES (1)`
      }).pipe(onFolder(path, false))
      assert.strictEqual(watch.calls, 0)
    })
  )

  for (const durable of ["durable", "volatile"]) {
    it.live(
      `has every acknowledged row after kill -9 (${durable})`,
      () =>
        Effect.gen(function* () {
          const path = yield* folder
          yield* Effect.promise(() => prepareDataDir(path))
          let acknowledged = 0
          for (const count of [40, 160]) {
            const last = yield* Effect.promise(() => runAndKill(path, durable, count))
            assert.isAbove(last, acknowledged)
            acknowledged = last
          }
          yield* Effect.gen(function* () {
            const sql = yield* SqlClient
            const rows =
              yield* sql`SELECT count(*)::int AS n, max(id)::int AS last FROM acknowledged
              WHERE length(body) = id % 500`
            assert.strictEqual(rows[0]?.n, rows[0]?.last)
            assert.isAtLeast(Number(rows[0]?.last), acknowledged)
          }).pipe(onFolder(path))
        }),
      180_000
    )
  }

  it.live("starts again after its first start was killed", () =>
    Effect.gen(function* () {
      const path = yield* folder
      fs.mkdirSync(join(path, "postgres.new", "base"), { recursive: true })
      fs.writeFileSync(join(path, "postgres.new", "PG_VERSION"), "18\n")
      const rows = yield* Effect.flatMap(SqlClient, (sql) => sql`SELECT 1 AS one`).pipe(
        onFolder(path, false)
      )
      assert.deepStrictEqual(rows, [{ one: 1 }])
      assert.deepStrictEqual(fs.readdirSync(path), ["lock.sqlite", "postgres"])
    })
  )

  it.effect("vacuums dead rows and bounds the WAL", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE "Odd name" (id int, body text)`
        yield* sql`ALTER TABLE "Odd name" ALTER body SET STORAGE plain`
        for (let round = 0; round < 30; round++) {
          yield* sql`INSERT INTO "Odd name"
            SELECT n, repeat('x', 4000) FROM generate_series(1, 1500) AS n`
          yield* sql`DELETE FROM "Odd name"`
          yield* TestClock.adjust("10 seconds")
        }
        const [row] = yield* sql`SELECT n_dead_tup AS dead, vacuum_count AS vacuums,
          (SELECT count(*) FROM pg_ls_waldir()) AS segments,
          (SELECT setting FROM pg_settings WHERE name = 'wal_segment_size') AS bytes
          FROM pg_stat_user_tables WHERE relname = 'Odd name'`
        assert.strictEqual(row?.dead, 0n)
        assert.isAtLeast(Number(row?.vacuums), 20)
        assert.isAtMost(Number(row?.segments) * Number(row?.bytes), 128 * 1024 * 1024)
      }).pipe(onFolder(path, false))
    })
  )
})

/** Runs the child until it has acknowledged this many more rows. Returns the last id that it printed. */
const runAndKill = async (path: string, durable: string, count: number) => {
  const file = await compiled("test/db/faults/embeddedChild.ts")
  return new Promise<number>((resolve, reject) => {
    const child = spawn(process.execPath, [...shortLived, file, path, durable], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...compileCache }
    })
    let output = ""
    const ids = () => output.slice(0, output.lastIndexOf("\n")).split("\n").slice(1)
    child.stdout.on("data", (data) => {
      output += String(data)
      if (ids().length >= count) child.kill("SIGKILL")
    })
    child.once("exit", () => {
      const last = Number(ids().at(-1))
      if (Number.isInteger(last)) resolve(last)
      else reject(new Error(`the child printed ${output}`))
    })
  })
}
