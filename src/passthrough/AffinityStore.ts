import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import { rowsOf } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { Provider } from "../domain/Provider.ts"

/** A key and a provider with several accounts. */
export interface AffinityRequest {
  readonly user: string
  readonly key: string
  readonly provider: Provider
  readonly vendor: string
  /** The accounts of the provider. */
  readonly accounts: ReadonlyArray<string>
  /** The account to bind if none is bound. `undefined` binds no new account. */
  readonly candidate: string | undefined
}

/**
 * The most receipts of a user that are searched for a receipt of the key. Receipts are indexed only by user, so without
 * this limit every call of a key without receipts would read all of them.
 */
const receiptsMax = 10_000

/** The accounts that store data created by the calls of a key. ADR 0134. */
export class AffinityStore extends Context.Service<AffinityStore>()(
  "gateway/passthrough/AffinityStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /**
       * The account of the key, shared by all processes. If none is bound, binds the account of the key's latest
       * receipt among the user's latest receipts, else the candidate. With a candidate, replaces an account that is no
       * longer configured.
       */
      bind: ({ accounts, candidate, key, provider, user, vendor }: AffinityRequest) =>
        sql`
          INSERT INTO account_affinities AS bound (api_key_id, provider, account_id)
          SELECT ${key}, ${provider}, first.account_id
          FROM (
            SELECT coalesce(
              (SELECT account_id FROM account_affinities
                WHERE api_key_id = ${key} AND provider = ${provider}),
              (SELECT account_id FROM (
                  SELECT id, api_key_id, vendor, account_id FROM calls
                  WHERE user_id = ${user}::uuid ORDER BY id DESC LIMIT ${receiptsMax}
                ) AS latest
                WHERE api_key_id = ${key} AND vendor = ${vendor}
                  AND account_id = ANY(${accounts}::text[])
                ORDER BY id DESC LIMIT 1),
              ${candidate ?? null}::text) AS account_id
          ) AS first
          WHERE first.account_id IS NOT NULL
          ON CONFLICT (api_key_id, provider) DO UPDATE SET account_id =
            CASE WHEN bound.account_id = ANY(${accounts}::text[]) THEN bound.account_id
              ELSE coalesce(${candidate ?? null}::text, bound.account_id) END
          RETURNING account_id`.pipe(
          rowsOf(Schema.Struct({ accountId: Schema.String })),
          Effect.map((rows) => Option.map(Array.head(rows), ({ accountId }) => accountId)),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(AffinityStore, AffinityStore.make)
}
