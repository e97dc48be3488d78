import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { GivenMetadata } from "../../catalog/bodies/Attachments.ts"
import { someOf, Text } from "../../catalog/bodies/Fields.ts"
import { DeliveryType } from "../../domain/Event.ts"
import { DeliveryId, EndpointId, EventId } from "../../domain/Ids.ts"
import {
  filterModelCharactersMax,
  filterModelsMax,
  webhookActivity,
  webhookDescriptionCharactersMax
} from "../../domain/limits/Limits.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { EndpointFilter, FailureClass, FindingCode, WebhookFormat } from "../../domain/Webhook.ts"
import { ChangesAccess } from "../Access.ts"
import { ofUser, pageOf, pageQuery } from "../Lists.ts"
import { created, manageErrors as error } from "../ManageErrors.ts"

const settings = {
  id: EndpointId,
  url: Schema.String,
  events: Schema.Array(DeliveryType),
  /** `openai`: events that OpenAI also has are sent in OpenAI's envelope. docs/reference/webhooks.md#openais-format */
  format: WebhookFormat,
  description: Schema.NullOr(Schema.String),
  enabled: Schema.Boolean,
  /** Selects the tasks whose events it receives; `null` for all tasks. */
  filter: Schema.NullOr(EndpointFilter)
}
const metadata = {
  secret_preview: Schema.String,
  /** Until then requests also have a signature with the secret from before the last rotation. */
  old_secret_expires_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp
}

/** The outcome of the latest attempts. docs/reference/webhooks.md#health */
const WebhookEndpointHealth = Schema.Struct({
  /** The outcome of the last attempt; `unknown` if there was none in seven days. */
  status: Schema.Literals(["unknown", "healthy", "failing"]),
  /** Failed attempts since the last success, counted up to 20. */
  failed_attempts: Schema.Int,
  /** The first failed attempt since the last success. */
  failing_since: Schema.NullOr(Timestamp),
  last_attempt: Schema.NullOr(
    Schema.Struct({
      started_at: Timestamp,
      status: Schema.NullOr(Schema.Int),
      failure: Schema.NullOr(FailureClass)
    })
  )
}).annotate({ identifier: "WebhookEndpointHealth" })

/** The states of an endpoint's deliveries by the hour of their creation. docs/reference/webhooks.md#activity */
const WebhookEndpointActivity = Schema.Struct({
  hours: Schema.Array(
    Schema.Struct({
      hour: Timestamp.annotate({ description: "When the hour began" }),
      succeeded: Schema.Int,
      failed: Schema.Int,
      waiting: Schema.Int.annotate({ description: "For their first or next attempt" }),
      has_more: Schema.Boolean.annotate({
        description: `The hour has more than ${webhookActivity.deliveriesPerHourMax} deliveries, of which only the newest are counted`
      })
    })
  )
}).annotate({ identifier: "WebhookEndpointActivity" })

export const WebhookEndpoint = Schema.Struct({
  ...settings,
  ...metadata,
  health: WebhookEndpointHealth
}).annotate({
  identifier: "WebhookEndpoint"
})

/** Only the responses to create and rotate contain `secret`. docs/reference/webhooks.md#secrets-and-rotation */
export const WebhookEndpointWithSecret = Schema.Struct({
  ...settings,
  secret: Schema.String,
  ...metadata
}).annotate({ identifier: "WebhookEndpointWithSecret" })

const Events = someOf(DeliveryType)
const Format = Schema.optionalKey(WebhookFormat)
const Description = Text.check(Schema.isMaxCodePoints(webhookDescriptionCharactersMax))

/** docs/reference/webhooks.md#filters */
const GivenFilter = Schema.Struct({
  models: Schema.optionalKey(
    someOf(Text.check(Schema.isNonEmpty(), Schema.isMaxLength(filterModelCharactersMax))).check(
      Schema.isMaxLength(filterModelsMax)
    )
  ),
  metadata: Schema.optionalKey(GivenMetadata)
}).annotate({ identifier: "WebhookEndpointFilter" })
const Filter = Schema.optionalKey(Schema.NullOr(GivenFilter))

const NewWebhookEndpoint = Schema.Struct({
  url: Text,
  events: Events,
  format: Format,
  description: Schema.optionalKey(Schema.NullOr(Description)),
  enabled: Schema.optionalKey(Schema.Boolean),
  filter: Filter
}).annotate({ identifier: "NewWebhookEndpoint" })

const WebhookEndpointChange = Schema.Struct({
  url: Schema.optionalKey(Text),
  events: Schema.optionalKey(Events),
  format: Format,
  description: Schema.optionalKey(Schema.NullOr(Description)),
  enabled: Schema.optionalKey(Schema.Boolean),
  filter: Filter
}).annotate({ identifier: "WebhookEndpointChange" })

const Recover = Schema.Struct({
  since: Timestamp.annotate({ description: "deliveries created at this time or later" })
}).annotate({ identifier: "RecoverWebhookDeliveries" })

const Recovered = Schema.Struct({
  recovered: Schema.Int,
  /** Whether the limit was reached: call again for the rest. */
  has_more: Schema.Boolean
}).annotate({ identifier: "RecoveredWebhookDeliveries" })

/** A delivery that a receiver could not verify. docs/reference/webhooks.md#debugging-a-signature. */
const ReceivedDelivery = Schema.Struct({
  headers: Schema.Record(Schema.String, Schema.String),
  /** The raw body as text, or as Base64 if it is not UTF-8. */
  body: Schema.optionalKey(Schema.String),
  body_base64: Schema.optionalKey(Schema.Uint8ArrayFromBase64),
  /** The secret with which the receiver verifies. */
  secret: Schema.optionalKey(Schema.String),
  /** When it was received; default: now. */
  received_at: Schema.optionalKey(Timestamp)
}).annotate({ identifier: "ReceivedWebhookDelivery" })

const SignatureReport = Schema.Struct({
  valid: Schema.Boolean,
  findings: Schema.Array(Schema.Struct({ code: FindingCode, detail: Schema.String }))
}).annotate({ identifier: "WebhookSignatureReport" })

/** A user's own webhook endpoints. docs/reference/webhooks.md#endpoints */
export class WebhookEndpointsApi extends HttpApiGroup.make("webhookEndpoints").add(
  HttpApiEndpoint.post("createWebhookEndpoint", "/webhook-endpoints", {
    payload: NewWebhookEndpoint,
    success: WebhookEndpointWithSecret.pipe(created),
    error
  }).annotate(ChangesAccess, "endpoints"),
  HttpApiEndpoint.get("listWebhookEndpoints", "/webhook-endpoints", {
    query: { ...pageQuery(EndpointId), ...ofUser },
    success: pageOf(WebhookEndpoint),
    error
  }),
  HttpApiEndpoint.get("getWebhookEndpoint", "/webhook-endpoints/:id", {
    params: { id: EndpointId },
    query: ofUser,
    success: WebhookEndpoint,
    error
  }),
  HttpApiEndpoint.get("getWebhookEndpointActivity", "/webhook-endpoints/:id/activity", {
    params: { id: EndpointId },
    query: ofUser,
    success: WebhookEndpointActivity,
    error
  }),
  HttpApiEndpoint.patch("updateWebhookEndpoint", "/webhook-endpoints/:id", {
    params: { id: EndpointId },
    payload: WebhookEndpointChange,
    success: WebhookEndpoint,
    error
  }).annotate(ChangesAccess, "endpoints"),
  HttpApiEndpoint.delete("deleteWebhookEndpoint", "/webhook-endpoints/:id", {
    params: { id: EndpointId },
    success: HttpApiSchema.NoContent,
    error
  }).annotate(ChangesAccess, "endpoints"),
  HttpApiEndpoint.post("rotateWebhookEndpoint", "/webhook-endpoints/:id/rotate", {
    params: { id: EndpointId },
    success: WebhookEndpointWithSecret,
    error
  }).annotate(ChangesAccess, "endpoints"),
  HttpApiEndpoint.post("testWebhookEndpoint", "/webhook-endpoints/:id/test", {
    params: { id: EndpointId },
    success: Schema.Struct({ event_id: EventId, delivery_id: DeliveryId }).pipe(
      HttpApiSchema.status(202)
    ),
    error
  }),
  HttpApiEndpoint.post("recoverWebhookEndpoint", "/webhook-endpoints/:id/recover", {
    params: { id: EndpointId },
    payload: Recover,
    success: Recovered.pipe(HttpApiSchema.status(202)),
    error
  }),
  HttpApiEndpoint.post("debugWebhookSignature", "/webhook-endpoints/:id/debug-signature", {
    params: { id: EndpointId },
    payload: ReceivedDelivery,
    success: SignatureReport,
    error
  })
) {}
