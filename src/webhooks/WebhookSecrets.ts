import { Context, DateTime, Effect, Layer } from "effect"
import type { Option } from "effect"
import type { UserId } from "../domain/Ids.ts"
import { secretOverlapHours } from "../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { secretPreview } from "../domain/Webhook.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { generateSecret } from "./Signature.ts"
import { WebhookSecretStore } from "./WebhookSecretStore.ts"
import type { WebhookSecretRow } from "./WebhookSecretStore.ts"

export type { WebhookSecretRow } from "./WebhookSecretStore.ts"

/** Generates a signing secret; returns it in plain text and encrypted for the store. */
export const makeSecret = (secrets: Secrets["Service"]) => {
  const text = generateSecret()
  return { text, encrypted: secrets.encrypt(text), preview: secretPreview(text) }
}

/** Until this time, the previous secret also signs after a rotation. docs/reference/webhooks.md#secrets-and-rotation */
export const overlapEnd = (now: DateTime.Utc) => DateTime.add(now, { hours: secretOverlapHours })

/** The secret that signs the webhooks of a user's tasks. docs/reference/webhooks.md#webhook-of-a-task */
export class WebhookSecrets extends Context.Service<
  WebhookSecrets,
  {
    /** `None` if none of the user's tasks has had a webhook and no secret was requested. */
    readonly get: (
      userId: UserId
    ) => Effect.Effect<Option.Option<WebhookSecretRow>, StoreUnavailable>
    /** Replaces the secret, or creates the first one. Only this method returns a secret in plain text. */
    readonly rotate: (
      userId: UserId
    ) => Effect.Effect<
      { readonly row: WebhookSecretRow; readonly secret: string },
      StoreUnavailable
    >
  }
>()("gateway/webhooks/WebhookSecrets") {
  static readonly layer = Layer.effect(
    WebhookSecrets,
    Effect.gen(function* () {
      const store = yield* WebhookSecretStore
      const secrets = yield* Secrets
      return WebhookSecrets.of({
        get: store.find,
        rotate: Effect.fn("WebhookSecrets.rotate")(function* (userId) {
          const now = yield* DateTime.now
          const { encrypted, preview, text } = makeSecret(secrets)
          const row = yield* store.rotate(userId, encrypted, preview, overlapEnd(now), now)
          return { row, secret: text }
        })
      })
    })
  )
}
