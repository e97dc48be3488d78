import { PgClient } from "@effect/sql-pg"
import { PGlite } from "@electric-sql/pglite"
import { Effect, Layer, Redacted } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { cp } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, inject } from "vitest"
import { layerEmbedded, layerPostgres } from "../../src/db/Database.ts"
import type { Database } from "../../src/db/Database.ts"
import * as Migrations from "../../src/db/Migrations.ts"
import { madeOnce } from "./madeOnce.ts"
import { serverUrl } from "./postgresProcess.ts"

const schema = fileURLToPath(new URL("../../schema/", import.meta.url))

let hashed: string | undefined

/** Changes with the schema and with PGlite's version, so that no template is ever stale. */
const schemaHash = () => {
  if (hashed !== undefined) return hashed
  const hash = createHash("sha256")
  hash.update(readFileSync(createRequire(import.meta.url).resolve("@electric-sql/pglite")))
  for (const file of readdirSync(schema, { encoding: "utf8", recursive: true }).sort()) {
    if (file.endsWith(".sql")) hash.update(file).update(readFileSync(join(schema, file)))
  }
  return (hashed = hash.digest("hex").slice(0, 16))
}

/** A migrated store as a folder, and its dump: made once a machine for each state of the schema. */
const templateFolder = () =>
  madeOnce(`store-${schemaHash()}`, (folder) =>
    Effect.runPromise(
      Effect.gen(function* () {
        yield* Migrations.migrate().pipe(
          Effect.provide(layerEmbedded({ dataDir: folder, durable: false }), { local: true })
        )
        yield* Effect.promise(async () => {
          const pglite = await PGlite.create(join(folder, "postgres"))
          const dump = await pglite.dumpDataDir("none")
          await pglite.close()
          writeFileSync(join(folder, "dump.tar"), new Uint8Array(await dump.arrayBuffer()))
        })
      })
    )
  )

let template: Blob | undefined

/** The dump, read once a process; a store is made from it in a quarter of a second. */
export const migratedTemplate = Effect.promise(
  async () => (template ??= new Blob([readFileSync(join(await templateFolder(), "dump.tar"))]))
)

/** Gives a data folder a migrated store, which the service opens as one of an earlier start. */
export const prepareDataDir = async (dataDir: string) => {
  mkdirSync(dataDir, { recursive: true })
  await cp(join(await templateFolder(), "postgres"), join(dataDir, "postgres"), {
    recursive: true
  })
}

/** A fresh embedded store in memory, migrated. */
export const embeddedDatabase: Layer.Layer<Database> = Layer.unwrap(
  Effect.map(migratedTemplate, (template) =>
    layerEmbedded({ dataDir: "memory", durable: false, template })
  )
).pipe(Layer.orDie)

/** The URL of the administrator's database on the run's server, or on `TEST_DATABASE_URL`. */
export const postgresServer: Effect.Effect<URL> = Effect.promise(
  async () => new URL(process.env.TEST_DATABASE_URL ?? (await serverUrl(inject("postgresFolder"))))
)

/** A fresh empty database on the server, dropped when the scope closes. Answers its URL. */
export const freshDatabase = Effect.fnUntraced(function* (options?: {
  readonly template?: string
}) {
  const server = yield* postgresServer
  const name = `test_${randomBytes(8).toString("hex")}`
  const run = (statement: string) =>
    Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(statement).unprepared).pipe(
      Effect.provide(layerPostgres({ url: Redacted.make(server.href) }), { local: true }),
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
const migratedDatabase = Effect.gen(function* () {
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
  }).pipe(
    Effect.provide(layerPostgres({ url: Redacted.make(server.href) }), { local: true }),
    Effect.orDie
  )
  return name
})

/** A fresh migrated database on the server, dropped when the scope closes. Returns its URL. */
export const migratedDatabaseUrl = Effect.flatMap(migratedDatabase, (template) =>
  freshDatabase({ template })
)

/** A fresh migrated database on a real Postgres, used through so many connections. */
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

/** Both stores with one connection each, which sees all that was done in its own statistics. */
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
