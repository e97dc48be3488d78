import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { Bytes, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

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
export class AccountKeyStore extends Context.Service<
  AccountKeyStore,
  {
    /**
     * Records the accounts in a process's configuration. `isStart`: also overwrites stored keys with the process's
     * current ones.
     */
    readonly keep: (
      accounts: ReadonlyArray<SealedAccount>,
      isStart: boolean,
      now: DateTime.Utc
    ) => Effect.Effect<void, StoreUnavailable>
    /** The accounts that are not in `ids`. */
    readonly others: (
      ids: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<StoredAccount>, StoreUnavailable>
    /**
     * Deletes accounts that have been in no configuration since then, except those with the job of an unfinished task.
     */
    readonly forget: (since: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
    /** Makes the tasks that wait for a slot of these accounts choose an account again. */
    readonly leave: (
      ids: ReadonlyArray<string>,
      now: DateTime.Utc
    ) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/AccountKeyStore") {
  static readonly layer = Layer.effect(
    AccountKeyStore,
    Effect.map(PgClient.PgClient, (sql) =>
      AccountKeyStore.of({
        keep: (accounts, isStart, now) =>
          sql`
            SELECT FROM vendor_accounts_keep(${accounts.map(({ id }) => id)}::text[],
              ${accounts.map(({ sealed }) => Buffer.from(sealed).toString("hex"))}::text[], ${isStart},
              ${toDate(now)})`.pipe(Effect.asVoid, storeFailures),
        others: (ids) =>
          sql`
            SELECT id, sealed, configured_at FROM vendor_accounts
            WHERE id <> ALL(${ids}::text[]) ORDER BY id`.pipe(rowsOf(StoredAccount), storeFailures),
        forget: (since) =>
          sql`SELECT FROM vendor_accounts_forget(${toDate(since)})`.pipe(
            Effect.asVoid,
            storeFailures
          ),
        leave: (ids, now) =>
          sql`SELECT FROM slots_leave(${ids}::text[], ${toDate(now)})`.pipe(
            Effect.asVoid,
            storeFailures
          )
      })
    )
  )
}
