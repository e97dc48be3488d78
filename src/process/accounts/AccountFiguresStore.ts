import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Schema } from "effect"
import { Micro, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

const Charged = Schema.Struct({ accountId: Schema.String, credits: Micro })
export type Charged = typeof Charged.Type

const LeasedRate = Schema.Struct({
  key: Schema.String,
  spacingSeconds: Schema.Finite,
  used: Schema.Int,
  resetsAt: Time
})
/** A rate limit of a vendor for tasks. `used` counts the permits of the current minute. */
export type LeasedRate = typeof LeasedRate.Type

/** Figures of vendor accounts over all processes. ADR 0164. */
export class AccountFiguresStore extends Context.Service<AccountFiguresStore>()(
  "gateway/process/AccountFiguresStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /** The charges of this day (UTC) for tasks and calls, by account. */
      charged: (day: DateTime.Utc) =>
        sql`
          SELECT account_id, sum(credits)::bigint AS credits FROM account_days
          WHERE day = ${DateTime.formatIsoDateUtc(day)}::date GROUP BY account_id`.pipe(
          rowsOf(Charged),
          storeFailures
        ),
      rates: (now: DateTime.Utc) =>
        sql`
          SELECT key, extract(epoch FROM spacing)::float8 AS spacing_seconds,
            CASE WHEN minute = date_trunc('minute', ${toDate(now)}::timestamptz) THEN used ELSE 0 END AS used,
            date_trunc('minute', ${toDate(now)}::timestamptz) + interval '1 minute' AS resets_at
          FROM rate_leases WHERE spacing IS NOT NULL ORDER BY key`.pipe(
          rowsOf(LeasedRate),
          storeFailures
        ),
      deleteBefore: (day: DateTime.Utc) =>
        sql`DELETE FROM account_days WHERE day < ${DateTime.formatIsoDateUtc(day)}::date`.pipe(
          Effect.asVoid,
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(AccountFiguresStore, AccountFiguresStore.make)
}
