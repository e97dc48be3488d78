import { Effect, Layer } from "effect"
import type { Redacted } from "effect"
import * as Database from "../db/Database.ts"
import * as DatabaseClock from "../db/DatabaseClock.ts"
import * as DirectConnection from "../db/DirectConnection.ts"
import * as Migrations from "../db/Migrations.ts"
import * as Hints from "./signals/Hints.ts"

/** A migrated Postgres, and what processes share besides its tables. docs/reference/processes.md */
export const layer = ({
  pool,
  url
}: {
  readonly url: Redacted.Redacted
  /** The size of the connection pool; the direct connection is additional. */
  readonly pool: number
}) => {
  // No timeout, because a migration may take long and waits for that of another process
  const forMigrations = Database.layerPostgres({ url, timeouts: "endless", maxConnections: 1 })
  // A separate pool that closes after the migration
  const migrated = Layer.effectDiscard(
    Migrations.migrate().pipe(Effect.provide(forMigrations, { local: true }))
  )
  return Layer.mergeAll(DatabaseClock.layer, Hints.layer).pipe(
    Layer.provideMerge(DirectConnection.layer(url)),
    Layer.provideMerge(Database.layerPostgres({ url, maxConnections: pool })),
    Layer.provide(migrated)
  )
}
