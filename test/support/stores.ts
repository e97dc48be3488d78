import { PgClient } from "@effect/sql-pg"
import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import { DateTime, Effect, Layer, Redacted } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { cp } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, inject } from "vitest"
import { layerPostgres, layerSession } from "../../src/db/Database.ts"
import type { Database } from "../../src/db/Database.ts"
import * as Migrations from "../../src/db/Migrations.ts"
import { initDbStartParams, startParams } from "../../src/db/PgliteOptions.ts"
import { PgliteSession } from "../../src/db/PgliteStream.ts"
import { partitionDaysAhead } from "../../src/domain/Limits.ts"
import { PartitionStore } from "../../src/process/PartitionStore.ts"
import { madeOnce } from "./madeOnce.ts"
import { serverUrl } from "./postgresProcess.ts"
import { returnStore, takeStore } from "./usedStores.ts"

const schema = fileURLToPath(new URL("../../schema/", import.meta.url))

/** Changes with PGlite's version. */
export const embeddedHash = () =>
  createHash("sha256").update(
    readFileSync(createRequire(import.meta.url).resolve("@electric-sql/pglite"))
  )

let hashed: string | undefined

/** Changes with the schema too, so that no template is stale. */
const schemaHash = () => {
  if (hashed !== undefined) return hashed
  const hash = embeddedHash()
  for (const folder of ["migrations", "functions"]) {
    for (const file of readdirSync(join(schema, folder)).sort())
      hash.update(file).update(readFileSync(join(schema, folder, file)))
  }
  return (hashed = hash.digest("hex").slice(0, 16))
}

/** An embedded store as a folder, and its dump: made once a machine. */
const storeFolder = <E>(hash: string, fill: Effect.Effect<unknown, E, Database>) =>
  madeOnce(`small-store-${hash}`, async (folder) => {
    const fs = new NodeFS(join(folder, "postgres"))
    const pglite = await PGlite.create({ fs, initDbStartParams, startParams: startParams(false) })
    const filled = layerSession(Effect.sync(() => new PgliteSession(pglite)))
    await Effect.runPromise(Effect.provide(fill, filled, { local: true }))
    // Nobody creates a database in it, and a copy is two thirds smaller without them
    await pglite.query("UPDATE pg_database SET datistemplate = false, datallowconn = true")
    for (const name of ["template0", "template1"]) await pglite.query(`DROP DATABASE ${name}`)
    await pglite.query("CHECKPOINT")
    const dump = await pglite.dumpDataDir("none")
    await pglite.close()
    writeFileSync(join(folder, "dump.tar"), new Uint8Array(await dump.arrayBuffer()))
  })

const templates = new Map<string, Blob>()

/** A dump of an embedded store: read once a process, 250 ms a copy. */
export const embeddedTemplate = <E>(hash: string, fill: Effect.Effect<unknown, E, Database>) =>
  Effect.promise(async () => {
    const known = templates.get(hash)
    if (known !== undefined) return known
    const template = new Blob([readFileSync(join(await storeFolder(hash, fill), "dump.tar"))])
    templates.set(hash, template)
    return template
  })

/** A dump of a migrated store. */
export const migratedTemplate = Effect.suspend(() =>
  embeddedTemplate(schemaHash(), Migrations.migrate())
)

/** A migrated store with the partitions that a start of the service at this time would make. */
const startedStore = (now: DateTime.Utc) => {
  const fill = Migrations.migrate().pipe(
    Effect.andThen(
      Effect.flatMap(PartitionStore, (store) =>
        Effect.andThen(store.maintain(now, partitionDaysAhead, now), store.maintainAudit(now, now))
      )
    ),
    Effect.provide(PartitionStore.layer)
  )
  return { hash: `${schemaHash()}-audit-${DateTime.formatIsoDateUtc(now)}`, fill }
}

/** Gives a data folder a store, which the service opens as one of an earlier start today. */
export const prepareDataDir = async (dataDir: string) => {
  mkdirSync(dataDir, { recursive: true })
  const { fill, hash } = startedStore(DateTime.nowUnsafe())
  const folder = await storeFolder(hash, fill)
  await cp(join(folder, "postgres"), join(dataDir, "postgres"), { recursive: true })
}

/** An empty embedded store in memory, as an earlier start of the service on the clock's day left it. */
export const startedDatabase: Layer.Layer<Database> = Layer.unwrap(
  Effect.gen(function* () {
    const { fill, hash } = startedStore(yield* DateTime.now)
    return layerOf(hash, yield* embeddedTemplate(hash, fill))
  })
)

/** An empty embedded store in memory, migrated. */
export const embeddedDatabase: Layer.Layer<Database> = Layer.unwrap(
  Effect.map(migratedTemplate, (template) => layerOf(schemaHash(), template))
)

const layerOf = (name: string, template: Blob) =>
  layerSession(
    Effect.acquireRelease(
      Effect.promise(() => takeStore(name, template)),
      (store) => Effect.promise(() => returnStore(store))
    ).pipe(Effect.map(({ pglite }) => new PgliteSession(pglite)))
  ).pipe(Layer.orDie)

/** The URL of the administrator's database on the run's server, or on `TEST_DATABASE_URL`. */
export const postgresServer: Effect.Effect<URL> = Effect.promise(
  async () => new URL(process.env.TEST_DATABASE_URL ?? (await serverUrl(inject("postgresFolder"))))
)

/** A connection to the administrator's database: each is a process of the server. */
const administrator = (server: URL) =>
  layerPostgres({ url: Redacted.make(server.href), maxConnections: 1 })

/** A fresh empty database on the server, dropped when the scope closes. Returns its URL. */
export const freshDatabase = Effect.fnUntraced(function* (options?: {
  readonly template?: string
}) {
  const server = yield* postgresServer
  const name = `test_${randomBytes(8).toString("hex")}`
  const run = (statement: string) =>
    Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(statement).unprepared).pipe(
      Effect.provide(administrator(server), { local: true }),
      Effect.orDie
    )
  yield* Effect.acquireRelease(
    run(`CREATE DATABASE ${name} TEMPLATE ${options?.template ?? "template0"}`),
    () => run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  )
  const url = new URL(server)
  url.pathname = `/${name}`
  return url
})

/** The migrated database that the fresh ones are copied from: made once a server. */
const makeMigratedDatabase = Effect.gen(function* () {
  const server = yield* postgresServer
  const name = `template_${schemaHash()}`
  const url = new URL(server)
  url.pathname = `/${name}_new`
  yield* Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* Effect.scoped(
      Effect.gen(function* () {
        const connection = yield* sql.reserve
        const run = (statement: string) => connection.executeUnprepared(statement, [], undefined)
        yield* run("SELECT pg_advisory_lock(811001)")
        const found = yield* run(`SELECT 1 FROM pg_database WHERE datname = '${name}'`)
        if (found.length > 0) return yield* run("SELECT pg_advisory_unlock(811001)")
        yield* run(`DROP DATABASE IF EXISTS ${name}_new WITH (FORCE)`)
        yield* run(`CREATE DATABASE ${name}_new TEMPLATE template0`)
        yield* Migrations.migrate().pipe(
          Effect.provide(layerPostgres({ url: Redacted.make(url.href) }), { local: true })
        )
        yield* run(`ALTER DATABASE ${name}_new RENAME TO ${name}`)
        return yield* run("SELECT pg_advisory_unlock(811001)")
      })
    )
  }).pipe(Effect.provide(administrator(server), { local: true }), Effect.orDie)
  return name
})

let migrated: Promise<string> | undefined

/** Asked for once a worker. */
const migratedDatabase = Effect.promise(
  () => (migrated ??= Effect.runPromise(makeMigratedDatabase))
)

/** A fresh migrated database on the server, dropped when the scope closes. Returns its URL. */
export const migratedDatabaseUrl = Effect.flatMap(migratedDatabase, (template) =>
  freshDatabase({ template })
)

/** A fresh migrated database on a real Postgres, with this number of connections. */
const postgresOver = (maxConnections?: number): Layer.Layer<Database> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const url = yield* migratedDatabaseUrl
      return layerPostgres({
        url: Redacted.make(url.href),
        ...(maxConnections === undefined ? {} : { maxConnections })
      })
    })
  ).pipe(Layer.orDie)

/** A fresh migrated database on a real Postgres. */
export const postgresDatabase = postgresOver()

export const stores = { postgres: postgresDatabase, embedded: embeddedDatabase }

/** Both stores with one connection each, whose own statistics count all its statements. */
export const singleStores = { postgres: postgresOver(1), embedded: embeddedDatabase }

/**
 * The same suite on both stores. Use the layer with `layer(database)((it) => …)` of
 * `@effect/vitest` for one fresh migrated database a suite, or `Effect.provide` for one a test.
 */
export const describeStores = (
  name: string,
  suite: (database: Layer.Layer<Database>, store: "postgres" | "embedded") => void
) => {
  for (const store of ["postgres", "embedded"] as const) {
    describe(`${name} (${store})`, () => suite(stores[store], store))
  }
}
