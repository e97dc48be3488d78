import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { DeliveryType } from "../../domain/Event.ts"
import { DeliveryId, EndpointId, EventId, TaskId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { DeliveryStatus, FailureClass } from "../../domain/Webhook.ts"
import { ofUser, pageOf, pageQuery, timeQuery, traceQuery } from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"

const deliveryFields = {
  id: DeliveryId,
  /** If `webhook_url` is set, this is not an endpoint of the user but stands for task webhooks at one origin. */
  endpoint_id: EndpointId,
  /** The URL of the task's own webhook; `null` if the endpoint's URL is used. */
  webhook_url: Schema.NullOr(Schema.String),
  event_id: EventId,
  type: DeliveryType,
  task_id: Schema.NullOr(TaskId),
  status: DeliveryStatus,
  /** The number of ended attempts, without lost ones. */
  attempt_count: Schema.Int,
  /** When the next attempt is due, while the delivery is `pending`. */
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
  /** `null` while the attempt is in progress. */
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
  /**
   * The bytes that are sent, as UTF-8 text. Each attempt has the headers of
   * docs/reference/webhooks.md#delivery-request.
   */
  body: Schema.String,
  attempts: Schema.Array(WebhookAttempt)
}).annotate({ identifier: "WebhookDeliveryWithAttempts" })

/** Selects the deliveries that match all given members. */
const RedeliveryFilter = Schema.Struct({
  endpoint_id: Schema.optionalKey(EndpointId),
  /** Default: `failed` and `skipped`. */
  status: Schema.optionalKey(Schema.Literals(["succeeded", "failed", "skipped"])),
  type: Schema.optionalKey(DeliveryType),
  since: Schema.optionalKey(Timestamp.annotate({ description: "created at this time or later" })),
  until: Schema.optionalKey(Timestamp.annotate({ description: "created before this time" }))
}).annotate({ identifier: "RedeliveryFilter" })

/** Deliveries to send again. */
const Redelivery = Schema.Struct({
  filter: RedeliveryFilter,
  cursor: Schema.optionalKey(
    DeliveryId.annotate({ description: "`next_cursor` of the call before" })
  )
}).annotate({ identifier: "RedeliverWebhookDeliveries" })

const Redelivered = Schema.Struct({
  redelivered: Schema.Int,
  /** Set if the limit was reached: call again with it for the rest. */
  next_cursor: Schema.NullOr(DeliveryId)
}).annotate({ identifier: "RedeliveredWebhookDeliveries" })

/** The delivery log of the last 30 days. docs/reference/webhooks.md#delivery-log */
export class WebhookDeliveriesApi extends HttpApiGroup.make("webhookDeliveries").add(
  HttpApiEndpoint.get("listWebhookDeliveries", "/webhook-deliveries", {
    query: {
      endpoint_id: Schema.optionalKey(EndpointId),
      task_id: Schema.optionalKey(TaskId),
      ...timeQuery,
      ...traceQuery,
      status: Schema.optionalKey(DeliveryStatus),
      type: Schema.optionalKey(DeliveryType),
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
  HttpApiEndpoint.post("redeliverWebhookDeliveries", "/webhook-deliveries/redeliver", {
    payload: Redelivery,
    success: Redelivered.pipe(HttpApiSchema.status(202)),
    error
  }),
  HttpApiEndpoint.post("redeliverWebhookDelivery", "/webhook-deliveries/:id/redeliver", {
    params: { id: DeliveryId },
    success: WebhookDelivery.pipe(HttpApiSchema.status(202)),
    error
  })
) {}
