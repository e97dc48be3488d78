import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import type { Finding } from "../../../src/cli/doctor/Finding.ts"
import { layerPostgres } from "../../../src/db/Database.ts"
import { lockDataDir } from "../../../src/db/DataDirLock.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { freshDatabase, migratedDatabaseUrl, prepareDataDir } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const folder = Effect.sync(() => temporaryFolder("doctor-store"))

const findings = Effect.gen(function* () {
  const ran = yield* runCommand(["doctor", "--json"], { GATEWAY_URL: "http://127.0.0.1:9" })
  const found: ReadonlyArray<Finding> = JSON.parse(ran.out).findings
  return found
})

const storeFinding = Effect.map(findings, (found) => found.find(({ check }) => check === "store"))

/** docs/cli.md#doctor */
describe("gateway doctor", () => {
  it.live("checks the data folder even while a service has its store open", () =>
    Effect.gen(function* () {
      const dataDir = join(yield* folder, "data")
      yield* Effect.promise(() => prepareDataDir(dataDir))
      yield* withEnvironment({ DATA_DIR: dataDir, BASE_URL: "http://localhost:8080" })
      yield* lockDataDir(dataDir)
      const found = (yield* findings).filter(({ check }) => /^(?:data folder|store)$/u.test(check))
      assert.deepEqual(
        found.map(({ check, detail, status }) => [check, status, detail]),
        [
          ["data folder", "ok", `${dataDir} is writable`],
          [
            "store",
            "ok",
            `DATA_DIR: the folder ${dataDir} is in use by the process ${process.pid}: a service is running there`
          ]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.live("says why Postgres accepts no writes, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const url = yield* migratedDatabaseUrl
      yield* withEnvironment({
        DATA_DIR: join(yield* folder, "data"),
        BASE_URL: "http://localhost:8080",
        ADMIN_TOKEN: "operator-token-of-the-test",
        DATABASE_URL: url.href,
        MASTER_KEY: Buffer.alloc(32, 1).toString("base64")
      })
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        assert.strictEqual((yield* storeFinding)?.status, "ok")
        assert.deepStrictEqual(yield* sql`SELECT id FROM processes`, [])
        yield* sql`
          CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100';
          END $$`.unprepared
        yield* sql`CREATE TRIGGER refuse BEFORE INSERT ON processes
          FOR EACH ROW EXECUTE FUNCTION refuse()`.unprepared
        const found = yield* storeFinding
        assert.strictEqual(found?.status, "broken")
        assert.match(
          found?.detail ?? "",
          /accepts no writes: the disk of Postgres is full \(SQLSTATE 53100\)$/u
        )
      }).pipe(Effect.provide(layerPostgres({ url: Redacted.make(url.href), maxConnections: 1 })))
    })
  )
})

/** docs/standbys.md#after-a-restore */
describe("gateway store mark-restored", () => {
  it.live("refuses a database without a gateway, and leaves it empty for a restore", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase()
      yield* withEnvironment({
        BASE_URL: "http://localhost:8080",
        ADMIN_TOKEN: "operator-token-of-the-test",
        DATABASE_URL: url.href,
        MASTER_KEY: Buffer.alloc(32, 1).toString("base64")
      })
      const ran = yield* runCommand(["store", "mark-restored"])
      assert.strictEqual(ran.code, 1)
      assert.match(
        ran.error,
        /^Error: DATABASE_URL: the database .* contains no gateway\. Restore/u
      )
      const tables = Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`
      )
      const store = layerPostgres({ url: Redacted.make(url.href), maxConnections: 1 })
      assert.deepStrictEqual(yield* Effect.provide(tables, store), [])
    }).pipe(Effect.scoped)
  )
})
