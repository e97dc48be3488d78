import { ConnectionError, GatewayError } from "./Errors.ts"
import { openEvents } from "./EventStream.ts"
import { queryText } from "./Requests.ts"
import type { Requests } from "./Requests.ts"
import { isTransient } from "./Retry.ts"
import type { WebhookEndpoint } from "./schema.ts"
import { notTheGateway } from "./Task.ts"
import type { RequestOptions } from "./Transport.ts"

export type EventType = WebhookEndpoint["events"][number]

/** All events except `webhook.failing`, `key.expiring` and OpenAI's, which are only sent to endpoints. */
export type StreamedEventType = Exclude<
  EventType,
  "webhook.failing" | "key.expiring" | `response.${string}` | `video.${string}` | `batch.${string}`
>

/** An event as webhooks deliver it. docs/reference/webhooks.md#events */
export interface PublishedEvent {
  readonly id: string
  readonly type: StreamedEventType
  /** ISO 8601. */
  readonly created_at: string
  readonly task_id: string | null
  /** The body that a delivery sends, as text. */
  readonly body: string
  /** The position of this event in the stream. A stream opened with it as `after` starts with the next event. */
  readonly position?: string
}

export interface ListenOptions extends RequestOptions {
  /** Default: all. */
  readonly types?: ReadonlyArray<StreamedEventType> | undefined
  /** ISO 8601. Also sends events created since this time. */
  readonly since?: string | undefined
  /** The `position` of an event. Sends the events after it. */
  readonly after?: string | undefined
  /** Called when the connection was lost or closed by the gateway. The client then reconnects. */
  readonly onCut?: (() => void) | undefined
}

const allTypes: ReadonlyArray<StreamedEventType> = [
  "task.created",
  "task.succeeded",
  "task.failed",
  "task_batch.completed",
  "balance.low"
]

/** A resumed stream repeats at most one event, possibly with alerts in between. */
const seenMax = 16

/** Whether a later attempt may succeed. Browsers report a redirect as status 0. */
const isPassing = (error: GatewayError): boolean =>
  error instanceof ConnectionError || (error.status !== 0 && isTransient(error.status, false))

/** The events of the tasks and the balance of the key's user. docs/reference/http.md#events-of-a-user */
export const eventsOf = (api: Requests) => ({
  /**
   * An endless stream of events from now on, each once and in the order in which they happened. Requires scope
   * `manage`. After a lost connection the stream resumes where it was cut. Rejects with the reason of the signal, and
   * if a retry cannot help: the gateway refuses the key or the position, or the server is not a gateway. A slow
   * consumer loses no events.
   */
  listen: (options?: ListenOptions) => listen(api, options)
})

async function* listen(
  { transport }: Requests,
  options: ListenOptions = {}
): AsyncGenerator<PublishedEvent> {
  const { after, onCut, since, types = allTypes, ...others } = options
  const { signal } = transport.settings(others)
  const seen: Array<string> = []
  let position = after
  let retry = 0
  const onId = (id: string) => {
    position = id
    retry = 0
  }
  for (;;) {
    const path = `/manage/v1/events${queryText({ events: types.join(","), since })}`
    const headers = position === undefined ? {} : { "last-event-id": position }
    let retryAfter: number | undefined
    try {
      const request = { ...others, method: "GET", path, headers, isRepeatable: true }
      for await (const text of openEvents(transport, request, onId)) {
        const event = eventIn(text)
        if (seen.includes(event.id)) continue
        if (seen.push(event.id) > seenMax) seen.shift()
        retry = 0
        yield position === undefined ? event : { ...event, position }
      }
    } catch (error) {
      if (!(error instanceof GatewayError) || !isPassing(error)) throw error
      ;({ retryAfter } = error)
    }
    onCut?.()
    await transport.backOff(retry, retryAfter, signal)
    retry += 1
  }
}

const isEvent = (it: unknown): it is { readonly type: "event"; readonly data: PublishedEvent } =>
  typeof it === "object" && it !== null && "data" in it && "type" in it && it.type === "event"

const eventIn = (text: string): PublishedEvent => {
  const parsed = jsonIn(text)
  if (!isEvent(parsed)) throw notTheGateway(200)
  return parsed.data
}

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
