import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import { Bytes, rowsOf, Time } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { ApiKeyId, UserId } from "../domain/Ids.ts"

/** The user that an OIDC subject belongs to, and the key that the user's access tokens use. */
const TokenOwner = Schema.Struct({
  userId: UserId,
  disabledAt: Schema.NullOr(Time),
  /** The user's console key; null if the user has none. */
  apiKeyId: Schema.NullOr(ApiKeyId),
  keyHash: Schema.NullOr(Bytes),
  /** When a console key of the user was last revoked. */
  revokedAt: Schema.NullOr(Time)
})
export type TokenOwner = typeof TokenOwner.Type

/** Finds users by the subject of an access token. */
export class AccessTokenStore extends Context.Service<AccessTokenStore>()(
  "gateway/users/AccessTokenStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /** Finds a user by `oidc_subject`, including disabled users. */
      ownerOf: (subject: string) =>
        sql`
          SELECT u.id AS user_id, u.disabled_at, k.id AS api_key_id, k.key_hash,
            (SELECT max(r.revoked_at) FROM api_keys r WHERE r.user_id = u.id AND r.is_console) AS revoked_at
          FROM users u LEFT JOIN api_keys k ON k.user_id = u.id AND k.is_console AND k.revoked_at IS NULL
          WHERE u.oidc_subject = ${subject}`.pipe(
          rowsOf(TokenOwner),
          Effect.map(Array.head),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(AccessTokenStore, AccessTokenStore.make)
}
