import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option } from "effect"
import type { DateTime } from "effect"
import { DirectConnection } from "../db/DirectConnection.ts"
import { toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

const heartbeat = `
  INSERT INTO processes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)
  ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`

/** Heartbeats of the processes of the service. */
export class ProcessStore extends Context.Service<
  ProcessStore,
  {
    /** Waits behind no other statement of this process. */
    readonly heartbeat: (id: string, now: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
    /**
     * This process has ended; the next rescue frees what it owned. Its row stays, because what it sent
     * still counts in the sliding minute (ADR 0104).
     */
    readonly leave: (id: string, now: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
    /** Only for a store that one process alone can open. */
    readonly deleteAll: Effect.Effect<void, StoreUnavailable>
    /** Deletes the processes without a heartbeat since then. */
    readonly deleteOld: (since: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/ProcessStore") {
  static readonly layer = Layer.effect(
    ProcessStore,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const query = Option.match(yield* DirectConnection, {
        onNone: () => (statement: string, parameters: ReadonlyArray<unknown>) =>
          storeFailures(sql.unsafe<object>(statement, parameters)),
        onSome: (direct) => direct.query
      })
      return ProcessStore.of({
        heartbeat: (id, now) => Effect.asVoid(query(heartbeat, [id, toDate(now)])),
        leave: (id, now) =>
          sql`
            UPDATE processes SET heartbeat_at = '-infinity', left_at = ${toDate(now)}
            WHERE id = ${id}`.pipe(Effect.asVoid, storeFailures),
        deleteAll: sql`DELETE FROM processes`.pipe(Effect.asVoid, storeFailures),
        deleteOld: (since) =>
          sql`
            DELETE FROM processes WHERE greatest(heartbeat_at, left_at) < ${toDate(since)}`.pipe(
            Effect.asVoid,
            storeFailures
          ),
        ping: sql`SELECT 1`.pipe(Effect.asVoid, storeFailures)
      })
    })
  )
}
