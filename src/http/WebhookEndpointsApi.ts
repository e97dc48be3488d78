import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { EventType } from "../domain/Event.ts"
import { DeliveryId, EndpointId, EventId } from "../domain/Ids.ts"
import { webhookDescriptionCharactersMax } from "../domain/Limits.ts"
import { Timestamp } from "../domain/Task.ts"
import { Text } from "../models/Fields.ts"
import { created, manageErrors as error } from "./ManageErrors.ts"
import { pageOf, PageQuery } from "./Paging.ts"

const endpointFields = {
  id: EndpointId,
  url: Schema.String,
  events: Schema.Array(EventType),
  description: Schema.NullOr(Schema.String),
  enabled: Schema.Boolean,
  secret_preview: Schema.String,
  created_at: Timestamp,
  updated_at: Timestamp
}

export const WebhookEndpoint = Schema.Struct(endpointFields).annotate({
  identifier: "WebhookEndpoint"
})

/** `secret` is shown on create and rotate alone. Spec, Webhook endpoint. */
export const WebhookEndpointWithSecret = Schema.Struct({
  ...endpointFields,
  secret: Schema.String
}).annotate({ identifier: "WebhookEndpointWithSecret" })

const Events = Schema.NonEmptyArray(EventType)
const Description = Text.check(Schema.isMaxCodePoints(webhookDescriptionCharactersMax))

const NewWebhookEndpoint = Schema.Struct({
  url: Text,
  events: Events,
  description: Schema.optionalKey(Schema.NullOr(Description)),
  enabled: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "NewWebhookEndpoint" })

const WebhookEndpointChange = Schema.Struct({
  url: Schema.optionalKey(Text),
  events: Schema.optionalKey(Events),
  description: Schema.optionalKey(Schema.NullOr(Description)),
  enabled: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "WebhookEndpointChange" })

/** A user's own webhook endpoints. Contract 3. */
export class WebhookEndpointsApi extends HttpApiGroup.make("webhookEndpoints").add(
  HttpApiEndpoint.post("createWebhookEndpoint", "/webhook-endpoints", {
    payload: NewWebhookEndpoint,
    success: WebhookEndpointWithSecret.pipe(created),
    error
  }),
  HttpApiEndpoint.get("listWebhookEndpoints", "/webhook-endpoints", {
    query: PageQuery,
    success: pageOf(WebhookEndpoint),
    error
  }),
  HttpApiEndpoint.get("getWebhookEndpoint", "/webhook-endpoints/:id", {
    params: { id: EndpointId },
    success: WebhookEndpoint,
    error
  }),
  HttpApiEndpoint.patch("updateWebhookEndpoint", "/webhook-endpoints/:id", {
    params: { id: EndpointId },
    payload: WebhookEndpointChange,
    success: WebhookEndpoint,
    error
  }),
  HttpApiEndpoint.delete("deleteWebhookEndpoint", "/webhook-endpoints/:id", {
    params: { id: EndpointId },
    success: HttpApiSchema.NoContent,
    error
  }),
  HttpApiEndpoint.post("rotateWebhookEndpoint", "/webhook-endpoints/:id/rotate", {
    params: { id: EndpointId },
    success: WebhookEndpointWithSecret,
    error
  }),
  HttpApiEndpoint.post("testWebhookEndpoint", "/webhook-endpoints/:id/test", {
    params: { id: EndpointId },
    success: Schema.Struct({ event_id: EventId, delivery_id: DeliveryId }).pipe(
      HttpApiSchema.status(202)
    ),
    error
  })
) {}
