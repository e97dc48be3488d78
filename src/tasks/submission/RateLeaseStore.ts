import { PgClient } from "@effect/sql-pg"
import { Array, Context, Duration, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** Permits leased by one statement. */
export interface PermitLease {
  readonly key: string
  readonly count: number
  readonly spacing: Duration.Duration
  readonly now: DateTime.Utc
}

/** An account, or a model of one, at which the vendor refused the service itself. Open until then. */
export interface FaultRow {
  readonly key: string
  readonly until: DateTime.Utc
}

/** State of vendor accounts that all processes share: permits of rate-limited calls, and open faults. */
export class RateLeaseStore extends Context.Service<
  RateLeaseStore,
  {
    /** Leases permits, `spacing` apart; returns the time of the first. */
    readonly lease: (lease: PermitLease) => Effect.Effect<DateTime.Utc, StoreUnavailable>
    readonly openFault: (fault: FaultRow) => Effect.Effect<void, StoreUnavailable>
    readonly closeFaults: (keys: ReadonlyArray<string>) => Effect.Effect<void, StoreUnavailable>
    readonly openFaults: (
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<FaultRow>, StoreUnavailable>
  }
>()("gateway/tasks/submission/RateLeaseStore") {
  static readonly layer = Layer.effect(
    RateLeaseStore,
    Effect.map(PgClient.PgClient, (sql) =>
      RateLeaseStore.of({
        lease: ({ count, key, now, spacing }) =>
          sql`
            SELECT * FROM rate_leases_take(${key}, ${count},
              make_interval(secs => ${Duration.toSeconds(spacing)}), ${toDate(now)})`.pipe(
            rowsOf(LeaseRow),
            Effect.map((rows) =>
              Option.match(Array.head(rows), {
                onNone: () => now,
                onSome: ({ firstAt }) => firstAt
              })
            ),
            storeFailures
          ),
        openFault: ({ key, until }) =>
          sql`
            INSERT INTO vendor_faults (key, until) VALUES (${key}, ${toDate(until)})
            ON CONFLICT (key) DO UPDATE SET until = excluded.until`.pipe(
            Effect.asVoid,
            storeFailures
          ),
        closeFaults: (keys) =>
          sql`DELETE FROM vendor_faults WHERE key = ANY(${keys}::text[])`.pipe(
            Effect.asVoid,
            storeFailures
          ),
        openFaults: (now) =>
          sql`SELECT key, until FROM vendor_faults WHERE until > ${toDate(now)}`.pipe(
            rowsOf(Schema.Struct({ key: Schema.String, until: Time })),
            storeFailures
          )
      })
    )
  )
}

const LeaseRow = Schema.Struct({ firstAt: Time })
