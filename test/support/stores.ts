import { PgClient } from "@effect/sql-pg"
import type { Vitest } from "@effect/vitest"
import { PGlite } from "@electric-sql/pglite"
import { DateTime, Effect, Layer, Redacted } from "effect"
import type { Duration, Scope } from "effect"
import { randomBytes } from "node:crypto"
import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, inject } from "vitest"
import { layerPostgres, layerSession } from "../../src/db/Database.ts"
import type { Database } from "../../src/db/Database.ts"
import * as Migrations from "../../src/db/Migrations.ts"
import { startParams } from "../../src/db/PgliteOptions.ts"
import { PgliteSession } from "../../src/db/PgliteStream.ts"
import {
  embeddedTemplate,
  migratedTemplate,
  schemaHash,
  startedStore,
  storeFolder
} from "../../src/testing/StoreTemplates.ts"
import { returnStore, takeStore } from "../../src/testing/UsedStores.ts"
import { liveLayer } from "./liveLayer.ts"
import { serverUrl } from "./postgresProcess.ts"
import { giveBack, withInitial, takeUsed } from "./usedDatabases.ts"

/** Copies a store into a data folder. The service opens it as if an earlier start on the same day had created it. */
export const prepareDataDir = async (dataDir: string) => {
  mkdirSync(dataDir, { recursive: true })
  const { fill, hash } = startedStore(DateTime.nowUnsafe())
  const folder = await storeFolder(hash, fill)
  // Synchronous, because with promises the 800 files would take five times as long
  cpSync(join(folder, "postgres"), join(dataDir, "postgres"), { recursive: true })
}

/** An empty embedded in-memory store, as an earlier start of the service on the clock's day left it. */
export const startedDatabase: Layer.Layer<Database> = Layer.unwrap(
  Effect.gen(function* () {
    const { fill, hash } = startedStore(yield* DateTime.now)
    return layerOf(hash, yield* embeddedTemplate(hash, fill))
  })
)

/** An empty embedded in-memory store that has been migrated. */
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

/** A connection to the administrator's database. Each one is a process of the server. */
const administrator = (server: URL) =>
  layerPostgres({ url: Redacted.make(server.href), maxConnections: 1 })

/** Runs a statement as the administrator. */
const administer = Effect.fnUntraced(function* (statement: string) {
  const server = yield* postgresServer
  yield* Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(statement).unprepared).pipe(
    Effect.provide(administrator(server), { local: true }),
    Effect.orDie
  )
})

/** Creates a database on the server and returns its URL. */
const createDatabase = Effect.fnUntraced(function* (template: string) {
  const name = `test_${randomBytes(8).toString("hex")}`
  yield* administer(`CREATE DATABASE ${name} TEMPLATE ${template}`)
  const url = new URL(yield* postgresServer)
  url.pathname = `/${name}`
  return url
})

const dropDatabase = ({ pathname }: URL) =>
  administer(`DROP DATABASE IF EXISTS ${pathname.slice(1)} WITH (FORCE)`)

/** An empty new database on the server, dropped when the scope closes. Returns its URL. */
export const freshDatabase = (options?: { readonly template?: string }) =>
  Effect.acquireRelease(createDatabase(options?.template ?? "template0"), dropDatabase)

/** Creates the template database of this name, once per server. */
const makeTemplate = <E>(name: string, fill: Effect.Effect<unknown, E, Database>) =>
  Effect.gen(function* () {
    const server = yield* postgresServer
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
          yield* fill.pipe(
            Effect.provide(layerPostgres({ url: Redacted.make(url.href) }), { local: true })
          )
          yield* run(`ALTER DATABASE ${name}_new RENAME TO ${name}`)
          return yield* run("SELECT pg_advisory_unlock(811001)")
        })
      )
    }).pipe(Effect.provide(administrator(server), { local: true }), Effect.orDie)
    return name
  })

const templates = new Map<string, Promise<string>>()

/** Cached, so that each worker asks only once. */
const templateNamed = <E>(name: string, fill: Effect.Effect<unknown, E, Database>) => {
  const made = templates.get(name) ?? Effect.runPromise(makeTemplate(name, fill))
  templates.set(name, made)
  return made
}

const templateOf = <E>(hash: string, fill: Effect.Effect<unknown, E, Database>) =>
  Effect.promise(() => templateNamed(`template_${hash.replaceAll("-", "_")}`, fill))

/** A new copy of a template database, or a used one that has been emptied. Returns its URL. */
const copyOf = Effect.fnUntraced(function* <E>(
  hash: string,
  fill: Effect.Effect<unknown, E, Database>
) {
  const template = yield* templateOf(hash, fill)
  // On a developer's own server, databases that are kept for the next test would never be dropped
  if (process.env.TEST_DATABASE_URL !== undefined) return yield* freshDatabase({ template })
  const { url } = yield* Effect.acquireRelease(
    Effect.suspend(() => {
      const used = takeUsed(template)
      return used === undefined
        ? Effect.flatMap(createDatabase(template), (url) =>
            Effect.orDie(withInitial(template, url))
          )
        : Effect.succeed(used)
    }),
    (database) =>
      Effect.flatMap(giveBack(database), (isKept) =>
        isKept ? Effect.void : dropDatabase(database.url)
      )
  )
  return url
})

/** An empty migrated database on the server until the scope closes. Returns its URL. */
export const migratedDatabaseUrl = Effect.suspend(() => copyOf(schemaHash(), Migrations.migrate()))

/** An empty database as an earlier start of the service on this day left it. Returns its URL. */
const startedDatabaseUrl = Effect.fnUntraced(function* (day: DateTime.Utc) {
  const { fill, hash } = startedStore(day)
  return yield* copyOf(hash, fill)
})

/** A database for a separate process, which uses the real clock. */
export const processDatabaseUrl = Effect.suspend(() => startedDatabaseUrl(DateTime.nowUnsafe()))

const postgresOver = (url: Effect.Effect<URL, never, Scope.Scope>, maxConnections?: number) =>
  Layer.unwrap(
    Effect.map(url, ({ href }) =>
      layerPostgres({
        // Without a limit of time for a connection, because the test's clock may jump past it while one is opened
        url: Redacted.make(`${href}?connect_timeout=0`),
        ...(maxConnections === undefined ? {} : { maxConnections })
      })
    )
  ).pipe(Layer.orDie)

/** A new migrated database on a real Postgres. */
export const postgresDatabase: Layer.Layer<Database> = postgresOver(migratedDatabaseUrl)

/** Stores that are migrated but were never started. */
const migratedStores = { postgres: postgresDatabase, embedded: embeddedDatabase }

/** Stores as an earlier start of the service on the clock's day left them: without rows, with its partitions. */
export const stores = {
  postgres: postgresOver(Effect.flatMap(DateTime.now, startedDatabaseUrl)),
  embedded: startedDatabase
}

/** A database that was never used: the tables of an emptied one still have pages, which affect plans. */
const unusedDatabaseUrl = Effect.suspend(() =>
  Effect.flatMap(templateOf(schemaHash(), Migrations.migrate()), (template) =>
    freshDatabase({ template })
  )
)

/** The same for the embedded store. */
const unusedEmbedded: Layer.Layer<Database> = Layer.unwrap(
  Effect.map(migratedTemplate, (loadDataDir) =>
    layerSession(
      Effect.acquireRelease(
        Effect.promise(() => PGlite.create({ loadDataDir, startParams: startParams(false) })),
        (pglite) => Effect.promise(() => pglite.close())
      ).pipe(Effect.map((pglite) => new PgliteSession(pglite)))
    ).pipe(Layer.orDie)
  )
)

/** Both stores, never used before, with a single connection each, so that its statistics cover all statements. */
export const singleStores = {
  postgres: postgresOver(unusedDatabaseUrl, 1),
  embedded: unusedEmbedded
}

type Suite = (database: Layer.Layer<Database>, store: "postgres" | "embedded") => void

const describeEach =
  (of: Readonly<Record<"postgres" | "embedded", Layer.Layer<Database>>>) =>
  (name: string, suite: Suite) => {
    for (const store of ["postgres", "embedded"] as const) {
      describe(`${name} (${store})`, () => suite(of[store], store))
    }
  }

/**
 * Runs the same suite on both stores. Use the layer with `layer(database)((it) => …)` of `@effect/vitest` for one new
 * database per suite, or with `Effect.provide` for one per test.
 */
export const describeStores = describeEach(stores)

/** The same for tests that share a database, the services over it and the real clock. */
export const describeLive = <R, E>(
  name: string,
  services: Layer.Layer<R, E, Database>,
  suite: (it: Vitest.MethodsNonLive<R | Database>, store: "postgres" | "embedded") => void,
  timeout?: Duration.Input
) =>
  describeStores(name, (database, store) => {
    liveLayer(Layer.provideMerge(services, database), timeout)((it) => suite(it, store))
  })

/** The same without the partitions that a start creates. */
export const describeMigratedStores = describeEach(migratedStores)
