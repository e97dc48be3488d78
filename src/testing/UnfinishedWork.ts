import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"

const decode = Schema.decodeUnknownEffect(Schema.Tuple([Schema.Struct({ count: Schema.Int })]))

/** How many tasks and deliveries are unfinished; `undefined` while the store is unavailable. */
export const unfinishedWork = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [{ count }] = yield* decode(
    yield* sql`
      SELECT ((SELECT count(*) FROM runs) + (SELECT count(*) FROM delivery_queue))::int AS count`
  )
  return count
}).pipe(Effect.catchCause(() => Effect.undefined))
