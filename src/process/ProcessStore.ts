import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { DateTime } from "effect"
import { toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

/** Heartbeats of the processes of the service. */
export class ProcessStore extends Context.Service<
  ProcessStore,
  {
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
    Effect.map(PgClient.PgClient, (sql) => {
      return ProcessStore.of({
        heartbeat: (id, now) =>
          sql`
            INSERT INTO processes (id, started_at, heartbeat_at)
            VALUES (${id}, ${toDate(now)}, ${toDate(now)})
            ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`.pipe(
            Effect.asVoid,
            storeFailures
          ),
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
