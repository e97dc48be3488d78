import { Schema } from "effect"
import { OpenAiEventType } from "../Event.ts"
import { WebhookFormat } from "../Webhook.ts"

/** The events of one task. */
export const TaskEventType = Schema.Literals(["task.created", "task.succeeded", "task.failed"])
export type TaskEventType = typeof TaskEventType.Type

/** The events that a task's webhook receives if its create names none. */
export const outcomeEvents: ReadonlyArray<TaskEventType> = ["task.succeeded", "task.failed"]

/** Where the events of one task are sent. docs/reference/webhooks.md#webhook-of-a-task */
export interface TaskWebhook {
  readonly url: string
  readonly events: ReadonlyArray<TaskEventType | OpenAiEventType>
  readonly format: WebhookFormat
}

/** The JSON Schema of `webhook` in the body of a create. */
export const webhookJsonSchema = {
  type: "object",
  description: "A URL that gets the events of this task, signed by the user's webhook secret",
  properties: {
    url: { type: "string", format: "uri", description: "https, public" },
    events: {
      type: "array",
      description:
        "Without it: task.succeeded and task.failed. Those of OpenAI only with its format",
      items: {
        type: "string",
        enum: [...TaskEventType.literals, ...OpenAiEventType.literals]
      },
      minItems: 1,
      uniqueItems: true
    },
    format: {
      type: "string",
      enum: [...WebhookFormat.literals],
      default: "gateway",
      description: "openai: events that OpenAI has come in its envelope"
    }
  },
  required: ["url"],
  additionalProperties: false
}
