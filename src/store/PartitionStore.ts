import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { storeFailures } from "./Failures.ts"
import { rowsOf, toDate } from "./Rows.ts"

const Kept = Schema.Struct({ made: Schema.Int, dropped: Schema.Int })
type Kept = typeof Kept.Type

/** One process at a time: all of them keep the log at the same full hour. Unlike that of migrations. */
const advisoryLock = 7_305_004_118

/** The day partitions of events, deliveries, attempts and receipts of calls (architecture, rule 8). ADR 0053 and 0102. */
export class PartitionStore extends Context.Service<
  PartitionStore,
  {
    /** Makes the partitions from today to `daysAhead`, and drops what ended before `keepSince`. */
    readonly keep: (
      now: DateTime.Utc,
      daysAhead: number,
      keepSince: DateTime.Utc
    ) => Effect.Effect<Kept, StoreUnavailable>
  }
>()("gateway/store/PartitionStore") {
  static readonly layer = Layer.effect(
    PartitionStore,
    Effect.map(PgClient.PgClient, (sql) =>
      PartitionStore.of({
        keep: (now, daysAhead, keepSince) =>
          sql`SELECT pg_advisory_xact_lock(${advisoryLock})`.pipe(
            Effect.andThen(
              sql`
                SELECT made, dropped
                FROM partitions_keep(${toDate(now)}, ${daysAhead}::int, ${toDate(keepSince)})`.pipe(
                rowsOf(Kept)
              )
            ),
            sql.withTransaction,
            Effect.map((rows) => rows[0] ?? { made: 0, dropped: 0 }),
            storeFailures
          )
      })
    )
  )
}
