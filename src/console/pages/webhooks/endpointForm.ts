import type { Schemas } from "../../api/schema.ts"

export type Endpoint = Schemas["WebhookEndpoint"]
export type EventType = Endpoint["events"][number]

export const eventTypes: ReadonlyArray<EventType> = [
  "task.created",
  "task.succeeded",
  "task.failed",
  "task_batch.completed",
  "balance.low",
  "webhook.failing"
]

export interface EndpointFields {
  readonly url: string
  readonly description: string
  readonly events: ReadonlyArray<EventType>
}

export const fieldsOf = (endpoint: Endpoint | undefined): EndpointFields => ({
  url: endpoint?.url ?? "",
  description: endpoint?.description ?? "",
  events: endpoint?.events ?? ["task.succeeded", "task.failed"]
})

export const bodyOf = ({ description, events, url }: EndpointFields) => ({
  url,
  events: [...events],
  description: description === "" ? null : description
})
