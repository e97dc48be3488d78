import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Schema } from "effect"
import { Micro, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

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
export class AccountFiguresStore extends Context.Service<
  AccountFiguresStore,
  {
    /** The charges of this day (UTC) for tasks and calls, by account. */
    readonly charged: (day: DateTime.Utc) => Effect.Effect<ReadonlyArray<Charged>, StoreUnavailable>
    readonly rates: (
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<LeasedRate>, StoreUnavailable>
    readonly deleteBefore: (day: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/AccountFiguresStore") {
  static readonly layer = Layer.effect(
    AccountFiguresStore,
    Effect.map(PgClient.PgClient, (sql) =>
      AccountFiguresStore.of({
        charged: (day) =>
          sql`
            SELECT account_id, sum(credits)::bigint AS credits FROM account_days
            WHERE day = ${DateTime.formatIsoDateUtc(day)}::date GROUP BY account_id`.pipe(
            rowsOf(Charged),
            storeFailures
          ),
        rates: (now) =>
          sql`
            SELECT key, extract(epoch FROM spacing)::float8 AS spacing_seconds,
              CASE WHEN minute = date_trunc('minute', ${toDate(now)}::timestamptz) THEN used ELSE 0 END AS used,
              date_trunc('minute', ${toDate(now)}::timestamptz) + interval '1 minute' AS resets_at
            FROM rate_leases WHERE spacing IS NOT NULL ORDER BY key`.pipe(
            rowsOf(LeasedRate),
            storeFailures
          ),
        deleteBefore: (day) =>
          sql`DELETE FROM account_days WHERE day < ${DateTime.formatIsoDateUtc(day)}::date`.pipe(
            Effect.asVoid,
            storeFailures
          )
      })
    )
  )
}
