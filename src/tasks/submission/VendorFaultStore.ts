import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** An account, or a model of one, at which the vendor refused the service itself. Open until then. */
export interface FaultRow {
  readonly key: string
  readonly until: DateTime.Utc
}

/** Open faults of vendor accounts, shared by all processes. ADR 0083. */
export class VendorFaultStore extends Context.Service<
  VendorFaultStore,
  {
    readonly openFault: (fault: FaultRow) => Effect.Effect<void, StoreUnavailable>
    readonly closeFaults: (keys: ReadonlyArray<string>) => Effect.Effect<void, StoreUnavailable>
    readonly openFaults: (
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<FaultRow>, StoreUnavailable>
  }
>()("gateway/tasks/submission/VendorFaultStore") {
  static readonly layer = Layer.effect(
    VendorFaultStore,
    Effect.map(PgClient.PgClient, (sql) =>
      VendorFaultStore.of({
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
