import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** Flushes this connection's statistics to Postgres, so that its reads and writes become visible. */
export const countSoFar = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`SELECT pg_stat_force_next_flush()`
  yield* sql`SELECT pg_stat_clear_snapshot()`
})
