import { Schema } from "effect"

/** The events of one task. */
export const TaskEventType = Schema.Literals(["task.created", "task.succeeded", "task.failed"])
export type TaskEventType = typeof TaskEventType.Type

/** The events that a task's webhook gets when its create names none. */
export const outcomeEvents: ReadonlyArray<TaskEventType> = ["task.succeeded", "task.failed"]

/** Where the events of one task are sent. docs/reference/webhooks.md#webhook-of-a-task */
export interface TaskWebhook {
  readonly url: string
  readonly events: ReadonlyArray<TaskEventType>
}

/** The JSON Schema of `webhook` in the body of a create. */
export const webhookJsonSchema = {
  type: "object",
  description: "A URL that gets the events of this task, signed by the user's webhook secret",
  properties: {
    url: { type: "string", format: "uri", description: "https, public" },
    events: {
      type: "array",
      description: "Without it: task.succeeded and task.failed",
      items: { type: "string", enum: [...TaskEventType.literals] },
      minItems: 1,
      uniqueItems: true
    }
  },
  required: ["url"],
  additionalProperties: false
}
