import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { audited, named } from "../db/Audited.ts"
import { Bytes, rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { EndpointId, UserId } from "../domain/Ids.ts"

/** The secret that signs the webhooks of a user's tasks. */
export class WebhookSecretRow extends Schema.Class<WebhookSecretRow>("WebhookSecretRow")({
  secretPreview: Schema.String,
  previousSecretUntil: Schema.NullOr(Time)
}) {}

/** The secrets that sign deliveries to an endpoint; encrypted. */
export const SigningSecrets = Schema.Struct({
  secret: Bytes,
  previousSecret: Schema.NullOr(Bytes)
})
export type SigningSecrets = typeof SigningSecrets.Type

/** The webhook secrets of users. `task_accept_many` creates a user's first one. */
export class WebhookSecretStore extends Context.Service<WebhookSecretStore>()(
  "gateway/webhooks/WebhookSecretStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      find: (userId: UserId) =>
        sql`
          SELECT secret_preview, previous_secret_until FROM webhook_secrets
          WHERE user_id = ${userId}`.pipe(
          rowsOf(WebhookSecretRow),
          Effect.map(Array.head),
          storeFailures
        ),
      /** Stores a new secret. The current one, if any, becomes the previous one. */
      rotate: (
        userId: UserId,
        secret: Uint8Array,
        preview: string,
        previousUntil: DateTime.Utc,
        now: DateTime.Utc
      ) =>
        sql`
          INSERT INTO webhook_secrets AS w (user_id, secret, secret_preview, updated_at)
          VALUES (${userId}, ${secret}, ${preview}, ${toDate(now)})
          ON CONFLICT (user_id) DO UPDATE SET previous_secret = w.secret,
            previous_secret_until = ${toDate(previousUntil)}, secret = excluded.secret,
            secret_preview = excluded.secret_preview, updated_at = excluded.updated_at
          RETURNING secret_preview, previous_secret_until`.pipe(
          rowOf(WebhookSecretRow),
          audited(sql, named),
          storeFailures
        ),
      /** The secrets of a user's endpoint, or of the row that represents task webhooks to an origin. */
      signingAt: (userId: UserId, id: EndpointId) =>
        sql`
          SELECT coalesce(e.secret, s.secret) AS secret,
            CASE WHEN e.of_tasks THEN s.previous_secret ELSE e.previous_secret END AS previous_secret
          FROM webhook_endpoints e LEFT JOIN webhook_secrets s ON e.of_tasks AND s.user_id = e.user_id
          WHERE e.id = ${id} AND e.user_id = ${userId} AND e.deleted_at IS NULL
            AND coalesce(e.secret, s.secret) IS NOT NULL`.pipe(
          rowsOf(SigningSecrets),
          Effect.map(Array.head),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(WebhookSecretStore, WebhookSecretStore.make)
}
