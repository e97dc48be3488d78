import { Effect, Layer } from "effect"
import type { Redacted } from "effect"
import * as Database from "../db/Database.ts"
import * as DatabaseClock from "../db/DatabaseClock.ts"
import * as DirectConnection from "../db/DirectConnection.ts"
import * as Migrations from "../db/Migrations.ts"
import * as Hints from "./Hints.ts"

/** A Postgres, migrated, with what processes share beside its tables. docs/reference/processes.md */
export const layer = ({
  pool,
  url
}: {
  readonly url: Redacted.Redacted
  /** Connections beside the direct one. */
  readonly pool: number
}) => {
  // A migration may take long, and waits for the migration of another process
  const forMigrations = Database.layerPostgres({ url, timeouts: "endless", maxConnections: 1 })
  // Its connection is closed when it has ended
  const migrated = Layer.effectDiscard(
    Migrations.migrate().pipe(Effect.provide(forMigrations, { local: true }))
  )
  return Layer.mergeAll(DatabaseClock.layer, Hints.layer).pipe(
    Layer.provideMerge(DirectConnection.layer(url)),
    Layer.provideMerge(Database.layerPostgres({ url, maxConnections: pool })),
    Layer.provide(migrated)
  )
}
