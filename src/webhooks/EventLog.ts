import { Context, Effect, Layer } from "effect"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { EventLogStore } from "./EventLogStore.ts"
import type { EventFilter, EventRow } from "./EventLogStore.ts"

export type { EventRow } from "./EventLogStore.ts"

/** What happened to a user's tasks and balance, as webhooks deliver it. ADR 0220. */
export class EventLog extends Context.Service<
  EventLog,
  {
    /** The events of a user's newest tasks, and the last balance alert, oldest first. */
    readonly newest: (
      userId: UserId,
      filter: EventFilter
    ) => Effect.Effect<ReadonlyArray<EventRow>, StoreUnavailable>
  }
>()("gateway/webhooks/EventLog") {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.map(EventLogStore, ({ newest }) => EventLog.of({ newest }))
  )
}
