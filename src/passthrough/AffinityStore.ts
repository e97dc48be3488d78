import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import { rowsOf } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { Provider } from "../domain/Provider.ts"

/** A key and a provider with several accounts. */
export interface AffinityRequest {
  readonly user: string
  readonly key: string
  readonly provider: Provider
  readonly vendor: string
  /** The accounts of the provider. */
  readonly accounts: ReadonlyArray<string>
  /** Bound when none is: the account that is next. `undefined`: nothing is bound anew. */
  readonly candidate: string | undefined
}

/** Which account keeps what the calls of a key have made. ADR 0134. */
export class AffinityStore extends Context.Service<
  AffinityStore,
  {
    /**
     * The account of the key, over all processes; it is bound if it is not yet: to that of the key's last
     * receipt, else to the candidate. With a candidate one that is no longer configured is replaced.
     */
    readonly bind: (
      request: AffinityRequest
    ) => Effect.Effect<Option.Option<string>, StoreUnavailable>
  }
>()("gateway/passthrough/AffinityStore") {
  static readonly layer = Layer.effect(
    AffinityStore,
    Effect.map(PgClient.PgClient, (sql) =>
      AffinityStore.of({
        bind: ({ accounts, candidate = null, key, provider, user, vendor }) =>
          sql`
            INSERT INTO account_affinities AS bound (api_key_id, provider, account_id)
            SELECT ${key}, ${provider}, first.account_id
            FROM (
              SELECT coalesce(
                (SELECT account_id FROM account_affinities
                  WHERE api_key_id = ${key} AND provider = ${provider}),
                (SELECT account_id FROM calls
                  WHERE user_id = ${user}::uuid AND api_key_id = ${key} AND vendor = ${vendor}
                    AND account_id = ANY(${accounts}::text[])
                  ORDER BY id DESC LIMIT 1),
                ${candidate}::text) AS account_id
            ) AS first
            WHERE first.account_id IS NOT NULL
            ON CONFLICT (api_key_id, provider) DO UPDATE SET account_id =
              CASE WHEN bound.account_id = ANY(${accounts}::text[]) THEN bound.account_id
                ELSE coalesce(${candidate}::text, bound.account_id) END
            RETURNING account_id`.pipe(
            rowsOf(Schema.Struct({ accountId: Schema.String })),
            Effect.map((rows) => Option.map(Array.head(rows), ({ accountId }) => accountId)),
            storeFailures
          )
      })
    )
  )
}
