import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

/**
 * An account, or a model of an account, for which the vendor refused the service itself. The fault is open until
 * `until`.
 */
export interface FaultRow {
  readonly key: string
  readonly until: DateTime.Utc
}

const LastFault = Schema.Struct({
  accountId: Schema.String,
  model: Schema.String,
  at: Time,
  httpStatus: Schema.NullOr(Schema.Int),
  remedy: Schema.String
})
/** A fault, open or closed, that the operator has to repair. `accountId` includes the adapter. */
export type LastFault = typeof LastFault.Type

/** Faults of vendor accounts, shared by all processes. ADR 0083. */
export class VendorFaultStore extends Context.Service<VendorFaultStore>()(
  "gateway/tasks/submission/VendorFaultStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      openFault: ({ accountId, at, httpStatus, key, model, remedy, until }: FaultRow & LastFault) =>
        sql`
          INSERT INTO vendor_faults (key, until, account_id, model, at, http_status, remedy)
          VALUES (${key}, ${toDate(until)}, ${accountId}, ${model}, ${toDate(at)}, ${httpStatus}, ${remedy})
          ON CONFLICT (key) DO UPDATE SET until = excluded.until, account_id = excluded.account_id,
            model = excluded.model, at = excluded.at, http_status = excluded.http_status,
            remedy = excluded.remedy`.pipe(Effect.asVoid, storeFailures),
      /** Open and closed faults. */
      lastFaults: sql`
        SELECT account_id, model, at, http_status, remedy FROM vendor_faults WHERE at IS NOT NULL`.pipe(
        rowsOf(LastFault),
        storeFailures
      ),
      closeFaults: (keys: ReadonlyArray<string>) =>
        sql`UPDATE vendor_faults SET until = '-infinity' WHERE key = ANY(${keys}::text[])`.pipe(
          Effect.asVoid,
          storeFailures
        ),
      openFaults: (now: DateTime.Utc) =>
        sql`SELECT key, until FROM vendor_faults WHERE until > ${toDate(now)}`.pipe(
          rowsOf(Schema.Struct({ key: Schema.String, until: Time })),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(VendorFaultStore, VendorFaultStore.make)
}
