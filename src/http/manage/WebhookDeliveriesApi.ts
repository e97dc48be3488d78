import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { EventType } from "../../domain/Event.ts"
import { DeliveryId, EndpointId, EventId, TaskId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/Task.ts"
import { DeliveryStatus, FailureClass } from "../../domain/Webhook.ts"
import { manageErrors as error } from "./ManageErrors.ts"
import { ofUser, pageOf, pageQuery } from "./Paging.ts"

const deliveryFields = {
  id: DeliveryId,
  endpoint_id: EndpointId,
  event_id: EventId,
  type: EventType,
  task_id: Schema.NullOr(TaskId),
  status: DeliveryStatus,
  /** Attempts that have ended; lost ones are not counted. */
  attempt_count: Schema.Int,
  /** Of the next attempt, while the delivery is `pending`. */
  next_attempt_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp
}

export const WebhookDelivery = Schema.Struct(deliveryFields).annotate({
  identifier: "WebhookDelivery"
})

export const WebhookAttempt = Schema.Struct({
  seq: Schema.Int,
  due_at: Timestamp,
  started_at: Timestamp,
  /** `null` while it is under way. */
  ended_at: Schema.NullOr(Timestamp),
  /** From the due time to the start, in milliseconds. */
  lateness_ms: Schema.Int,
  remote_address: Schema.NullOr(Schema.String),
  /** HTTP status of the response, if there was one. */
  status: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass),
  detail: Schema.NullOr(Schema.String),
  /** First 16 KiB of the response's body. */
  answer: Schema.NullOr(Schema.String)
}).annotate({ identifier: "WebhookAttempt" })

export const WebhookDeliveryWithAttempts = Schema.Struct({
  ...deliveryFields,
  attempts: Schema.Array(WebhookAttempt)
}).annotate({ identifier: "WebhookDeliveryWithAttempts" })

/** The delivery log of the last 30 days. docs/reference/webhooks.md#delivery-log */
export class WebhookDeliveriesApi extends HttpApiGroup.make("webhookDeliveries").add(
  HttpApiEndpoint.get("listWebhookDeliveries", "/webhook-deliveries", {
    query: {
      endpoint_id: Schema.optionalKey(EndpointId),
      status: Schema.optionalKey(DeliveryStatus),
      type: Schema.optionalKey(EventType),
      ...pageQuery(DeliveryId),
      ...ofUser
    },
    success: pageOf(WebhookDelivery),
    error
  }),
  HttpApiEndpoint.get("getWebhookDelivery", "/webhook-deliveries/:id", {
    params: { id: DeliveryId },
    query: ofUser,
    success: WebhookDeliveryWithAttempts,
    error
  }),
  HttpApiEndpoint.post("redeliverWebhookDelivery", "/webhook-deliveries/:id/redeliver", {
    params: { id: DeliveryId },
    success: WebhookDelivery.pipe(HttpApiSchema.status(202)),
    error
  })
) {}
