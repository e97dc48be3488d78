import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** From here on this connection sees in the statistics of Postgres all that it has read and written. */
export const countSoFar = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`SELECT pg_stat_force_next_flush()`
  yield* sql`SELECT pg_stat_clear_snapshot()`
})
