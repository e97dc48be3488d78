import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { Bytes, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

/** An account with its encrypted settings. */
export interface SealedAccount {
  readonly id: string
  readonly sealed: Uint8Array
}

const StoredAccount = Schema.Struct({
  id: Schema.String,
  sealed: Bytes,
  configuredAt: Time
})
export type StoredAccount = typeof StoredAccount.Type

/** The vendor accounts of all processes, with their encrypted keys. ADR 0186. */
export class AccountKeyStore extends Context.Service<AccountKeyStore>()(
  "gateway/process/AccountKeyStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /**
       * Records the accounts in a process's configuration. `isStart`: also overwrites stored keys with the process's
       * current ones.
       */
      keep: (accounts: ReadonlyArray<SealedAccount>, isStart: boolean, now: DateTime.Utc) =>
        sql`
          SELECT FROM vendor_accounts_keep(${accounts.map(({ id }) => id)}::text[],
            ${accounts.map(({ sealed }) => Buffer.from(sealed).toString("hex"))}::text[], ${isStart},
            ${toDate(now)})`.pipe(Effect.asVoid, storeFailures),
      /** The accounts that are not in `ids`. */
      others: (ids: ReadonlyArray<string>) =>
        sql`
          SELECT id, sealed, configured_at FROM vendor_accounts
          WHERE id <> ALL(${ids}::text[]) ORDER BY id`.pipe(rowsOf(StoredAccount), storeFailures),
      /**
       * Deletes accounts that have been in no configuration since then, except those with the job of an unfinished
       * task.
       */
      forget: (since: DateTime.Utc) =>
        sql`SELECT FROM vendor_accounts_forget(${toDate(since)})`.pipe(
          Effect.asVoid,
          storeFailures
        ),
      /** Makes the tasks that wait for a slot of these accounts choose an account again. */
      leave: (ids: ReadonlyArray<string>, now: DateTime.Utc) =>
        sql`SELECT FROM slots_leave(${ids}::text[], ${toDate(now)})`.pipe(
          Effect.asVoid,
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(AccountKeyStore, AccountKeyStore.make)
}
