import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import {
  BalanceLow,
  KeyExpiring,
  TaskBatchCompleted,
  TaskCreated,
  TaskFailed,
  TaskSucceeded,
  WebhookFailing
} from "../../domain/Event.ts"
import { documented } from "../Documented.ts"

const part = Schema.String.annotate({ description: "See the section on signatures" })

const standardPart = Schema.optionalKey(
  Schema.String.annotate({ description: "See the section on Standard Webhooks" })
)

const receive = <const Type extends string, S extends Schema.Top>(type: Type, payload: S) =>
  HttpApiEndpoint.post(`receive_${type.replace(".", "_")}`, `/${type}`, {
    headers: {
      "X-Service-Webhook-Id": part,
      "X-Service-Webhook-Timestamp": part,
      "X-Service-Webhook-Signature": part,
      "webhook-id": standardPart,
      "webhook-timestamp": standardPart,
      "webhook-signature": standardPart
    },
    payload,
    success: HttpApiSchema.NoContent
  }).annotateMerge(
    documented({
      summary: `The event ${type}`,
      responses: {
        "2XX": { description: "Accepted; any other response is retried" },
        "4XX": { description: "Not accepted" }
      }
    })
  )

/** The webhooks that a receiver implements, with the event as path. docs/reference/webhooks.md#events */
export class WebhooksApi extends HttpApiGroup.make("Webhooks", { topLevel: true }).add(
  receive("task.created", TaskCreated),
  receive("task.succeeded", TaskSucceeded),
  receive("task.failed", TaskFailed),
  receive("task_batch.completed", TaskBatchCompleted),
  receive("balance.low", BalanceLow),
  receive("webhook.failing", WebhookFailing),
  receive("key.expiring", KeyExpiring)
) {}
