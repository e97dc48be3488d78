import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { audited, named } from "../../db/Audited.ts"
import { rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

const Drain = Schema.Struct({ accountId: Schema.String, since: Time })

/** Vendor accounts that get no new work, for all processes. */
export class AccountDrainStore extends Context.Service<AccountDrainStore>()(
  "gateway/process/AccountDrainStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      list: sql`SELECT account_id, since FROM account_drains`.pipe(rowsOf(Drain), storeFailures),
      /**
       * Drains an account. One that is already draining keeps its start time. Tasks that wait for a slot there choose
       * another account.
       */
      drain: (id: string, now: DateTime.Utc) =>
        sql`
          WITH left_slots AS MATERIALIZED (SELECT FROM slots_leave(ARRAY[${id}]::text[], ${toDate(now)}))
          INSERT INTO account_drains (account_id, since) SELECT ${id}, ${toDate(now)}
          FROM (SELECT count(*) FROM left_slots) AS done
          ON CONFLICT (account_id) DO NOTHING`.pipe(
          audited(sql, named),
          Effect.asVoid,
          storeFailures
        ),
      resume: (id: string) =>
        sql`DELETE FROM account_drains WHERE account_id = ${id}`.pipe(
          audited(sql, named),
          Effect.asVoid,
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(AccountDrainStore, AccountDrainStore.make)
}
