import { DateTime, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { WebhookSecrets } from "../../../webhooks/WebhookSecrets.ts"
import type { WebhookSecretRow } from "../../../webhooks/WebhookSecrets.ts"
import { requireReader, requireUser } from "../../server/access/Authentication.ts"

/** The secret that signs the webhooks of a user's tasks. */
export const layer = HttpApiBuilder.group(
  Api,
  "webhookSecret",
  Effect.fnUntraced(function* (handlers) {
    const secrets = yield* WebhookSecrets
    return handlers.handleAll({
      getWebhookSecret: Effect.fnUntraced(function* ({ query }) {
        const found = yield* secrets.get(yield* requireReader(query))
        if (Option.isNone(found)) return { secret_preview: null, old_secret_expires_at: null }
        return show(found.value, yield* DateTime.now)
      }),
      rotateWebhookSecret: Effect.fnUntraced(function* () {
        const { row, secret } = yield* secrets.rotate(yield* requireUser)
        return { ...show(row, yield* DateTime.now), secret }
      })
    })
  })
)

const show = ({ previousSecretUntil, secretPreview }: WebhookSecretRow, now: DateTime.Utc) => ({
  secret_preview: secretPreview,
  old_secret_expires_at:
    previousSecretUntil !== null && DateTime.isGreaterThan(previousSecretUntil, now)
      ? previousSecretUntil
      : null
})
