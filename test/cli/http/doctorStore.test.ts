import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Finding } from "../../../src/cli/doctor/Finding.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { layerEmbedded, layerPostgres } from "../../../src/db/Database.ts"
import { lockDataDir } from "../../../src/db/DataDirLock.ts"
import * as Gateway from "../../../src/Gateway.ts"
import { makeProcessId } from "../../../src/process/heartbeat/ProcessId.ts"
import { Secrets } from "../../../src/process/secrets/Secrets.ts"
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

/** docs/cli.md#doctor */
describe("the master key of gateway doctor", () => {
  it.live.each([
    { key: 1, status: "ok", detail: "it can read what the last process encrypted" },
    {
      key: 2,
      status: "warning",
      detail: "MASTER_KEY: the last process encrypted under a key that is not among these"
    }
  ] as const)("is $status if the last process had the key $key", ({ detail, key, status }) =>
    Effect.gen(function* () {
      const url = yield* migratedDatabaseUrl
      const last = makeProcessId(yield* secretsOf(key))
      yield* Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`
          INSERT INTO processes (id, started_at, heartbeat_at, left_at)
          VALUES ('proc_ended_before', '-infinity', '-infinity', now() - interval '1 hour'),
            (${last}, '-infinity', '-infinity', now())`
      ).pipe(
        Effect.provide(layerPostgres({ url: Redacted.make(url.href), maxConnections: 1 })),
        Effect.scoped
      )
      yield* withEnvironment({ ...secrets, DATABASE_URL: url.href })
      const found = (yield* findings).find(({ check }) => check === "master key")
      assert.deepInclude(found, { detail, status })
    })
  )

  it.live("is missed if the folder of an embedded store has lost it, and not generated", () =>
    Effect.gen(function* () {
      const dataDir = join(yield* folder, "data")
      yield* Effect.promise(() => prepareDataDir(dataDir))
      const last = makeProcessId(yield* secretsOf(1))
      yield* Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`
          INSERT INTO processes (id, started_at, heartbeat_at)
          VALUES (${last}, now(), now())`
      ).pipe(Effect.provide(layerEmbedded({ dataDir, durable: false })), Effect.scoped)
      yield* withEnvironment({ BASE_URL: "http://localhost:8080", DATA_DIR: dataDir })
      const found = (yield* findings).find(({ check }) => check === "master key")
      assert.deepInclude(found, {
        status: "warning",
        detail:
          "MASTER_KEY: there is none, and a new one cannot read what the last process encrypted"
      })
      assert.isFalse(existsSync(join(dataDir, "master-key")))
    }).pipe(Effect.scoped)
  )
})

/** The secrets under a key of 32 equal bytes. */
const secretsOf = (byte: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* withEnvironment({ ...secrets, MASTER_KEY: Buffer.alloc(32, byte).toString("base64") })
      return yield* Secrets.pipe(
        Effect.provide(
          Secrets.layer.pipe(Layer.provide(AppConfig.layer), Layer.provide(Gateway.platform))
        )
      )
    })
  )

const secrets = {
  BASE_URL: "http://localhost:8080",
  ADMIN_TOKEN: "operator-token-of-the-test",
  MASTER_KEY: Buffer.alloc(32, 1).toString("base64")
}

/** docs/standbys.md#after-a-restore, docs/operating.md#rotating-master_key */
describe.each([
  { args: ["store", "mark-restored"], remedy: "Restore a backup into it first" },
  { args: ["rotate-master-key"], remedy: "Set it to the value that the service has" }
])("gateway $args", ({ args, remedy }) => {
  it.live("refuses a database without a gateway, and leaves it empty for a restore", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase()
      yield* withEnvironment({ ...secrets, DATABASE_URL: url.href })
      const ran = yield* runCommand(args)
      assert.strictEqual(ran.code, 1)
      assert.match(ran.error, /^Error: DATABASE_URL: the database .* contains no gateway\. /u)
      assert.include(ran.error, remedy)
      const tables = Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`
      )
      const store = layerPostgres({ url: Redacted.make(url.href), maxConnections: 1 })
      assert.deepStrictEqual(yield* Effect.provide(tables, store), [])
    }).pipe(Effect.scoped)
  )

  it.live("refuses a folder without a store, and creates neither store nor secrets", () =>
    Effect.gen(function* () {
      const dataDir = join(yield* folder, "data")
      yield* withEnvironment({ BASE_URL: "http://localhost:8080", DATA_DIR: dataDir })
      const ran = yield* runCommand(args)
      assert.strictEqual(ran.code, 1)
      assert.include(
        ran.error,
        `Error: DATA_DIR: the embedded store in ${dataDir} contains no gateway. ${remedy}.`
      )
      assert.isFalse(existsSync(dataDir))
    }).pipe(Effect.scoped)
  )
})
