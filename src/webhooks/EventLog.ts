import { Context, Effect, Layer } from "effect"
import { EventLogStore } from "./EventLogStore.ts"

export type { EventPosition, EventRow } from "./EventLogStore.ts"

/** The events about a user's tasks and balance, as webhooks deliver them. ADR 0232. */
export class EventLog extends Context.Service<EventLog, EventLogStore["Service"]>()(
  "gateway/webhooks/EventLog"
) {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.map(EventLogStore, (store) => EventLog.of(store))
  )
}
