import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import type { Statement } from "effect/sql/Statement"
import { rowOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

const Counts = Schema.Struct({ made: Schema.Int, dropped: Schema.Int })
type Counts = typeof Counts.Type

/**
 * Lets one process at a time maintain partitions, because all processes start at the full hour. Must differ from the
 * lock of the migrations.
 */
const advisoryLock = 7_305_004_118

/**
 * The tables with daily partitions, and the column that determines the day. Events come last, because deliveries refer
 * to them and the process may end between two tables.
 */
const partitioned = [
  ["calls", "created_at"],
  ["delivery_attempts", "started_at"],
  ["deliveries", "created_at"],
  ["events", "created_at"]
] as const

/** The daily partitions of events, deliveries, attempts and receipts of calls. ADR 0053. */
export class PartitionStore extends Context.Service<PartitionStore>()(
  "gateway/process/PartitionStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /** Removes the `webhook_endpoints` rows of task webhooks that no longer have a delivery in the log. */
      removeTaskWebhooks: (unusedSince: DateTime.Utc) =>
        sql`SELECT * FROM task_webhooks_remove(${toDate(unusedSince)})`.pipe(
          Effect.asVoid,
          storeFailures
        ),
      /**
       * Creates the partitions from today to `daysAhead` and drops those that ended before `keepSince`. Uses one
       * transaction per table, so that writers wait for the lock of one table at most.
       */
      maintain: Effect.fnUntraced(function* (
        now: DateTime.Utc,
        daysAhead: number,
        keepSince: DateTime.Utc
      ) {
        const counts = yield* Effect.forEach(partitioned, ([table, column]) =>
          maintainAlone(
            sql,
            sql`
              SELECT made, dropped FROM partitions_maintain(
                ${table}, ${column}, ${toDate(now)}, ${daysAhead}::int, ${toDate(keepSince)})`
          )
        )
        yield* storeFailures(sql`SELECT * FROM delivery_queue_prune(${toDate(keepSince)})`)
        yield* storeFailures(
          sql`DELETE FROM withheld_alerts WHERE created_at < ${toDate(keepSince)}`
        )
        const sum = (key: keyof Counts) => counts.reduce((all, one) => all + one[key], 0)
        return { made: sum("made"), dropped: sum("dropped") }
      }),
      /** The same for the audit log's monthly partitions: the current and the next one. ADR 0168. */
      maintainAudit: (now: DateTime.Utc, keepSince: DateTime.Utc) =>
        maintainAlone(
          sql,
          sql`
            SELECT made, dropped FROM month_partitions_maintain(
              'audit_entries', 'created_at', ${toDate(now)}, ${toDate(keepSince)})`
        )
    }))
  }
) {
  static readonly layer = Layer.effect(PartitionStore, PartitionStore.make)
}

/** Runs the statement in a transaction that holds the lock. */
const maintainAlone = (sql: PgClient.PgClient, statement: Statement<unknown>) =>
  sql`SELECT pg_advisory_xact_lock(${advisoryLock})`.pipe(
    Effect.andThen(rowOf(Counts)(statement)),
    sql.withTransaction,
    storeFailures
  )
