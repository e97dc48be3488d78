import { Context, Schema } from "effect"
import type { DateTime, Effect, Option } from "effect"
import { Bytes, Time } from "../db/Rows.ts"
import type { EventBody } from "../domain/Event.ts"
import { DeliveryId, EndpointId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"

/** A delivery whose attempt is recorded as begun and is to be sent now. */
export class Claimed extends Schema.Class<Claimed>("Claimed")({
  id: DeliveryId,
  createdAt: Time,
  /** Failed attempts before this one: 0 to 5. */
  attempt: Schema.Int,
  /** Number of this attempt's row in the log. */
  seq: Schema.Int,
  dueAt: Time,
  startedAt: Time,
  body: Bytes,
  endpointId: EndpointId,
  url: Schema.String,
  /** Ciphertext, as is `previousSecret`. */
  secret: Bytes,
  // Null comes first: nearly every row has it, and a union tries its members in order.
  previousSecret: Schema.Union([Schema.Null, Bytes]),
  previousSecretUntil: Schema.Union([Schema.Null, Time])
}) {}

/** What became of one attempt. */
export interface Recorded {
  readonly claimed: Claimed
  readonly endedAt: DateTime.Utc
  readonly outcome: AttemptOutcome
  /** Absent when the delivery is done, be it `succeeded` or `failed`. */
  readonly nextDueAt: Option.Option<DateTime.Utc>
}

/** The queue of deliveries and the log of their attempts. The only writer of those tables. */
export class DeliveryStore extends Context.Service<
  DeliveryStore,
  {
    /**
     * Takes due deliveries of endpoints that are enabled, or that were asked for by hand, oldest
     * first, and records their attempts as begun. One call for many endpoints. Never more than
     * the sliding minute allows all processes together (ADR 0104).
     */
    readonly claim: (claim: {
      readonly wanted: ReadonlyArray<{ readonly endpointId: EndpointId; readonly limit: number }>
      readonly owner: string
      readonly now: DateTime.Utc
    }) => Effect.Effect<ReadonlyArray<Claimed>, StoreUnavailable>
    /**
     * Gives up a claim whose answer never came: what it may have taken was not sent, and is `lost`
     * at the next sweep.
     */
    readonly abandon: (claim: {
      readonly endpoints: ReadonlyArray<EndpointId>
      readonly owner: string
      readonly claimedAt: DateTime.Utc
    }) => Effect.Effect<void, StoreUnavailable>
    /** Undoes claims that were not sent: due again as before, without a trace in the log. */
    readonly giveBack: (claimed: ReadonlyArray<Claimed>) => Effect.Effect<void, StoreUnavailable>
    /** Completes attempts: done, or due again (architecture, rule 6). */
    readonly record: (recorded: ReadonlyArray<Recorded>) => Effect.Effect<void, StoreUnavailable>
    /**
     * Endpoints that have something that falls due after `since`, up to `until` (`now` if not given),
     * and the time of the next row that is not due yet.
     */
    readonly due: (
      since: Option.Option<DateTime.Utc>,
      now: DateTime.Utc,
      until?: DateTime.Utc
    ) => Effect.Effect<
      {
        readonly endpoints: ReadonlyArray<EndpointId>
        readonly next: Option.Option<DateTime.Utc>
      },
      StoreUnavailable
    >
    /** End times of the attempts that ended since then; one that has not ended counts as ended now. */
    readonly endedSince: (
      id: EndpointId,
      since: DateTime.Utc,
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<DateTime.Utc>, StoreUnavailable>
    /**
     * Attempts whose process died, or that were claimed before the second time, are `lost` and due
     * again at once, uncounted (ADR 0003). Answers how many.
     */
    readonly freeLost: (
      heartbeatSince: DateTime.Utc,
      claimedBefore: DateTime.Utc,
      now: DateTime.Utc
    ) => Effect.Effect<number, StoreUnavailable>
    /**
     * Skips what was queued for an endpoint while it was being disabled: the one race that the
     * disabling transaction cannot see.
     */
    readonly skipDisabled: (
      disabledSince: DateTime.Utc,
      now: DateTime.Utc
    ) => Effect.Effect<void, StoreUnavailable>
    /** One event to one endpoint, whatever it subscribes to: the console's test event. */
    readonly publishTo: (
      userId: UserId,
      endpointId: EndpointId,
      event: EventBody & { readonly type: string },
      now: DateTime.Utc
    ) => Effect.Effect<DeliveryId, StoreUnavailable>
  }
>()("gateway/webhooks/DeliveryStore") {}
