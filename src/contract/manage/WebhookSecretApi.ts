import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Timestamp } from "../../domain/task/Task.ts"
import { ChangesAccess } from "../Access.ts"
import { ofUser } from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"

/** Until then requests also have a signature with the secret from before the last rotation. */
const old_secret_expires_at = Schema.NullOr(Timestamp)

export const WebhookSecret = Schema.Struct({
  /** `null` until the first task with a webhook, or the first rotation. */
  secret_preview: Schema.NullOr(Schema.String),
  old_secret_expires_at
}).annotate({ identifier: "WebhookSecret" })

/** Only the response to rotate contains `secret`. */
const WebhookSecretShown = Schema.Struct({
  secret: Schema.String,
  secret_preview: Schema.String,
  old_secret_expires_at
}).annotate({ identifier: "WebhookSecretShown" })

/** The secret that signs the webhooks of a user's tasks. docs/reference/webhooks.md#webhook-of-a-task */
export class WebhookSecretApi extends HttpApiGroup.make("webhookSecret").add(
  HttpApiEndpoint.get("getWebhookSecret", "/webhook-secret", {
    query: ofUser,
    success: WebhookSecret,
    error
  }),
  HttpApiEndpoint.post("rotateWebhookSecret", "/webhook-secret/rotate", {
    success: WebhookSecretShown,
    error
  }).annotate(ChangesAccess, "endpoints")
) {}
