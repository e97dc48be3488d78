import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { audited, named } from "../../db/Audited.ts"
import { rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

const Drain = Schema.Struct({ accountId: Schema.String, since: Time })
export type AccountDrain = typeof Drain.Type

/** Vendor accounts that get no new work, for all processes. */
export class AccountDrainStore extends Context.Service<
  AccountDrainStore,
  {
    readonly list: Effect.Effect<ReadonlyArray<AccountDrain>, StoreUnavailable>
    /**
     * Drains an account. One that is already draining keeps its start time. Tasks that wait for a slot there choose
     * another account.
     */
    readonly drain: (id: string, now: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
    readonly resume: (id: string) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/AccountDrainStore") {
  static readonly layer = Layer.effect(
    AccountDrainStore,
    Effect.map(PgClient.PgClient, (sql) =>
      AccountDrainStore.of({
        list: sql`SELECT account_id, since FROM account_drains`.pipe(rowsOf(Drain), storeFailures),
        drain: (id, now) =>
          sql`
            WITH left_slots AS MATERIALIZED (SELECT FROM slots_leave(ARRAY[${id}]::text[], ${toDate(now)}))
            INSERT INTO account_drains (account_id, since) SELECT ${id}, ${toDate(now)}
            FROM (SELECT count(*) FROM left_slots) AS done
            ON CONFLICT (account_id) DO NOTHING`.pipe(
            audited(sql, named),
            Effect.asVoid,
            storeFailures
          ),
        resume: (id) =>
          sql`DELETE FROM account_drains WHERE account_id = ${id}`.pipe(
            audited(sql, named),
            Effect.asVoid,
            storeFailures
          )
      })
    )
  )
}
