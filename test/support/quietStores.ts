import { Effect, Layer, Redacted } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { layerPostgres } from "../../src/db/Database.ts"
import * as Migrations from "../../src/db/Migrations.ts"
import { runFolderPrefix, startServer, stopServer } from "./postgresProcess.ts"
import { singleStores } from "./stores.ts"

/**
 * A Postgres server for a single test file, with one connection. On a shared server, an open transaction in any
 * database, such as another test's, would prevent Postgres from recomputing which rows are dead.
 */
const ownPostgres = Layer.unwrap(
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), `${runFolderPrefix}${process.pid}-`))),
      (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
    )
    const { url } = yield* Effect.acquireRelease(
      Effect.promise(() => startServer(folder)),
      () => Effect.promise(() => stopServer(folder))
    )
    const database = layerPostgres({ url: Redacted.make(url), maxConnections: 1 })
    yield* Effect.provide(Migrations.migrate(), database, { local: true })
    return database
  })
).pipe(Layer.orDie)

/** Like `singleStores`, for tests that count dead rows. */
export const quietStores = { ...singleStores, postgres: ownPostgres }
