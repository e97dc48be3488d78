import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Schema } from "effect"
import { rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { EventBody } from "../domain/Event.ts"
import { ApiKeyId, EndpointId, UserId } from "../domain/Ids.ts"

const ExpiringKey = Schema.Struct({
  id: ApiKeyId,
  userId: UserId,
  name: Schema.String,
  preview: Schema.String,
  expiresAt: Time
})
/** A key that is about to expire and is reported to its user's endpoints. */
export type ExpiringKey = typeof ExpiringKey.Type

const Published = Schema.Struct({ endpoints: Schema.Array(EndpointId) })

/** Keys that are about to expire, and whether `key.expiring` was already published for them. */
export class ExpiringKeyStore extends Context.Service<ExpiringKeyStore>()(
  "gateway/webhooks/ExpiringKeyStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /**
       * Keys that expire within the next days, have not been reported for their current expiry time, and belong to
       * users with an endpoint for `key.expiring`. Excludes keys that were created with a shorter lifetime.
       */
      expiring: (now: DateTime.Utc, days: number, limit: number) =>
        sql`
          SELECT k.id, k.user_id, k.name, k.preview, k.expires_at FROM api_keys k
          WHERE k.expires_at > ${toDate(now)} AND k.expires_at <= ${toDate(DateTime.add(now, { days }))}
            AND k.revoked_at IS NULL AND k.disabled_at IS NULL
            AND k.expiring_told IS DISTINCT FROM k.expires_at
            AND k.created_at <= k.expires_at - make_interval(days => ${days}::int)
            AND EXISTS (
              SELECT FROM webhook_endpoints o
              WHERE o.user_id = k.user_id AND o.enabled AND o.deleted_at IS NULL AND NOT o.of_tasks
                AND 'key.expiring' = ANY (o.events))
          ORDER BY k.expires_at LIMIT ${limit}`.pipe(rowsOf(ExpiringKey), storeFailures),
      /** Publishes `key.expiring` once per expiry time. Returns the endpoints to notify. */
      publish: (key: ExpiringKey, event: EventBody, now: DateTime.Utc) =>
        sql`
          SELECT endpoints FROM key_expiring_publish(
            ${key.id}, ${toDate(key.expiresAt)}, ${event.id}, ${event.body}, ${toDate(now)})`.pipe(
          rowOf(Published),
          Effect.map(({ endpoints }) => endpoints),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(ExpiringKeyStore, ExpiringKeyStore.make)
}
