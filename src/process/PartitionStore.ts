import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

const Kept = Schema.Struct({ made: Schema.Int, dropped: Schema.Int })
type Kept = typeof Kept.Type

/** One process at a time: all of them keep the log at the same full hour. Unlike that of migrations. */
const advisoryLock = 7_305_004_118

/** The tables that lie in day partitions, and the columns that say the day. */
const partitioned = [
  ["events", "created_at"],
  ["deliveries", "created_at"],
  ["delivery_attempts", "started_at"],
  ["calls", "created_at"]
] as const

/** The day partitions of events, deliveries, attempts and receipts of calls (architecture, rule 8). ADR 0053 and 0102. */
export class PartitionStore extends Context.Service<
  PartitionStore,
  {
    /**
     * Makes the partitions from today to `daysAhead`, and drops what ended before `keepSince`; each
     * table by itself, so that nobody waits for more than one.
     */
    readonly keep: (
      now: DateTime.Utc,
      daysAhead: number,
      keepSince: DateTime.Utc
    ) => Effect.Effect<Kept, StoreUnavailable>
  }
>()("gateway/process/PartitionStore") {
  static readonly layer = Layer.effect(
    PartitionStore,
    Effect.map(PgClient.PgClient, (sql) =>
      PartitionStore.of({
        keep: Effect.fnUntraced(function* (now, daysAhead, keepSince) {
          const kept = yield* Effect.forEach(partitioned, ([table, column]) =>
            sql`SELECT pg_advisory_xact_lock(${advisoryLock})`.pipe(
              Effect.andThen(
                sql`
                  SELECT made, dropped FROM partitions_maintain(
                    ${table}, ${column}, ${toDate(now)}, ${daysAhead}::int, ${toDate(keepSince)})`.pipe(
                  rowsOf(Kept)
                )
              ),
              sql.withTransaction,
              storeFailures
            )
          )
          yield* storeFailures(sql`SELECT * FROM delivery_queue_prune(${toDate(keepSince)})`)
          const sum = (key: keyof Kept) => kept.flat().reduce((all, one) => all + one[key], 0)
          return { made: sum("made"), dropped: sum("dropped") }
        })
      })
    )
  )
}
