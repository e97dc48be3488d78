import { Duration, Effect, Schema } from "effect"
import { EventType } from "../domain/Event.ts"
import type { SentRequest, WebhookSenderLog } from "../webhooks/WebhookSender.ts"

/** An attempt that a receiver has received. */
export interface ReceivedWebhook {
  readonly type: string
  readonly url: string
  /** `whd_…`, the same for every attempt. */
  readonly deliveryId: string
  /** The parsed body. docs/reference/webhooks.md#events */
  readonly event: WebhookEvent
  /** The bytes of the body, as text. */
  readonly body: string
  /** Milliseconds since the start of the gateway. */
  readonly afterMillis: number
}

const WebhookEvent = Schema.StructWithRest(
  Schema.Struct({ id: Schema.String, type: Schema.String, data: Schema.Unknown }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)
export type WebhookEvent = typeof WebhookEvent.Type
const decodeEvent = Schema.decodeUnknownSync(Schema.fromJsonString(WebhookEvent))

export interface ListenOptions {
  /** Default: `https://receiver.test/webhooks`, to which nothing is really sent. */
  readonly url?: string
  /** Default: all events. */
  readonly events?: ReadonlyArray<EventType>
}

export interface ReceivedOptions {
  /** Only attempts about this task. */
  readonly taskId?: string
  /** The minimum number of attempts. Default: 1. */
  readonly count?: number
  /** In the gateway's time. Default: 1 hour. */
  readonly within?: Duration.Input
}

export interface TestWebhooks {
  /** Creates an endpoint of the user and returns its secret. */
  readonly listen: (
    options?: ListenOptions
  ) => Effect.Effect<{ readonly id: string; readonly url: string; readonly secret: string }>
  /**
   * Advances the time until attempts of this type have been received, and returns the last one. Dies with a list of
   * what was received instead.
   */
  readonly received: (type: EventType, options?: ReceivedOptions) => Effect.Effect<ReceivedWebhook>
  /** All attempts so far, oldest first. */
  readonly all: Effect.Effect<ReadonlyArray<ReceivedWebhook>>
}

export interface WebhookParts {
  readonly fetch: (path: string, init?: RequestInit) => Effect.Effect<Response>
  readonly key: string
  readonly log: WebhookSenderLog["Service"]
  readonly passUntil: PassUntil
  /** Unix time, milliseconds. */
  readonly startedAt: number
}

/** Advances the time until the condition is met. Dies with this text if that takes too long. */
export type PassUntil = (
  isReached: Effect.Effect<boolean>,
  atMost: Duration.Input,
  missing: () => string
) => Effect.Effect<void>

const Endpoint = Schema.Struct({ id: Schema.String, url: Schema.String, secret: Schema.String })
const decodeEndpoint = Schema.decodeUnknownEffect(Endpoint)

export const makeTestWebhooks = (parts: WebhookParts): TestWebhooks => {
  const { fetch, key, log, passUntil, startedAt } = parts
  const all = Effect.map(log.sent, (sent) => sent.map((it) => receivedOf(it, startedAt)))
  return {
    all,
    listen: Effect.fn("TestWebhooks.listen")(function* (options: ListenOptions = {}) {
      const { events = EventType.literals, url = "https://receiver.test/webhooks" } = options
      const response = yield* fetch("/manage/v1/webhook-endpoints", {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ url, events })
      })
      const body = yield* Effect.promise((): Promise<unknown> => response.json())
      if (!response.ok) return yield* Effect.die(new Error(JSON.stringify(body)))
      return yield* Effect.orDie(decodeEndpoint(body))
    }),
    received: Effect.fn("TestWebhooks.received")(function* (
      type: EventType,
      { count = 1, taskId = "", within = "1 hour" }: ReceivedOptions = {}
    ) {
      let seen: ReadonlyArray<ReceivedWebhook> = []
      let found: ReadonlyArray<ReceivedWebhook> = []
      const isReached = Effect.map(all, (received) => {
        seen = received
        found = received.filter((it) => it.type === type && it.body.includes(taskId))
        return found.length >= count
      })
      const of = taskId === "" ? "" : ` of task ${taskId}`
      yield* passUntil(isReached, within, () =>
        [
          `${found.length} of ${count} ${type} webhooks${of} within ${Duration.format(Duration.fromInputUnsafe(within))}. Received:`,
          ...(seen.length === 0 ? ["  nothing; webhooks.listen() creates an endpoint"] : []),
          ...seen.map(
            (it) => `  +${it.afterMillis / 1000} s  ${it.type} ${it.deliveryId} to ${it.url}`
          )
        ].join("\n")
      )
      return found.at(-1) ?? (yield* Effect.die(new Error(`No ${type}`)))
    })
  }
}

const receivedOf = ({ atMillis, request }: SentRequest, startedAt: number): ReceivedWebhook => {
  const body = new TextDecoder().decode(request.body)
  const event = decodeEvent(body)
  const { deliveryId, url } = request
  return { type: event.type, url, deliveryId, event, body, afterMillis: atMillis - startedAt }
}
