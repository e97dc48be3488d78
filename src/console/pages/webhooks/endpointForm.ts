import type { Schemas } from "../../api/schema.ts"

export type Endpoint = Schemas["WebhookEndpoint"]
export type EventType = Endpoint["events"][number]

export const eventTypes: ReadonlyArray<EventType> = [
  "task.created",
  "task.succeeded",
  "task.failed",
  "task_batch.completed",
  "balance.low",
  "webhook.failing",
  "key.expiring"
]

/** OpenAI's event types, which only endpoints in its format receive. */
export const openAiEventTypes: ReadonlyArray<EventType> = [
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "batch.completed",
  "batch.failed",
  "batch.expired",
  "batch.cancelled",
  "video.completed",
  "video.failed"
]

type Format = Endpoint["format"]

const isFormat = (text: string): text is Format => text === "gateway" || text === "openai"

/** The event types that an endpoint of this format can receive. */
export const eventTypesOf = (format: Format): ReadonlyArray<EventType> =>
  format === "openai" ? [...eventTypes, ...openAiEventTypes] : eventTypes

/** The fields in another format, without events that the format lacks. */
export const withFormat = (fields: EndpointFields, text: string): EndpointFields => {
  const format = isFormat(text) ? text : fields.format
  const known = eventTypesOf(format)
  return { ...fields, format, events: fields.events.filter((type) => known.includes(type)) }
}

export interface EndpointFields {
  readonly url: string
  readonly description: string
  readonly events: ReadonlyArray<EventType>
  readonly format: Format
}

export const fieldsOf = (endpoint: Endpoint | undefined): EndpointFields => ({
  url: endpoint?.url ?? "",
  description: endpoint?.description ?? "",
  events: endpoint?.events ?? ["task.succeeded", "task.failed"],
  format: endpoint?.format ?? "gateway"
})

export const bodyOf = ({ description, events, format, url }: EndpointFields) => ({
  url,
  format,
  events: [...events],
  description: description === "" ? null : description
})
