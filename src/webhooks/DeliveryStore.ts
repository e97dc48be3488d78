import { Context, Schema } from "effect"
import type { DateTime, Effect, Option } from "effect"
import { Bytes, Time } from "../db/Rows.ts"
import type { EventBody } from "../domain/Event.ts"
import { DeliveryId, EndpointId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"

/** A delivery that this process has claimed and must send now. */
export class ClaimedDelivery extends Schema.Class<ClaimedDelivery>("ClaimedDelivery")({
  id: DeliveryId,
  createdAt: Time,
  /** Failed attempts before this one, 0 to 5. */
  attempt: Schema.Int,
  /** Number of this attempt in the log. */
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

/** The outcome of one attempt. */
export interface AttemptRecord {
  readonly claimed: ClaimedDelivery
  readonly endedAt: DateTime.Utc
  readonly outcome: AttemptOutcome
  /** `None` if the delivery has ended as `succeeded` or `failed`. */
  readonly nextDueAt: Option.Option<DateTime.Utc>
}

/** The queue of deliveries and the log of their attempts. The only writer of those tables. */
export class DeliveryStore extends Context.Service<
  DeliveryStore,
  {
    /**
     * Claims due deliveries of many endpoints, oldest first; for a disabled endpoint only manually
     * requested ones. Never more than the sliding minute and the concurrent attempts of all processes
     * allow. ADR 0104.
     */
    readonly claim: (claim: {
      readonly wanted: ReadonlyArray<{ readonly endpointId: EndpointId; readonly limit: number }>
      readonly owner: string
      /** Claims deliveries due by then. */
      readonly now: DateTime.Utc
      /** The same moment by the database's clock, by which other processes judge the claim. */
      readonly claimedAt: DateTime.Utc
      /** Called for each endpoint whose capacity is reduced by the attempts of other processes. */
      readonly onBusy?: (id: EndpointId) => void
    }) => Effect.Effect<ReadonlyArray<ClaimedDelivery>, StoreUnavailable>
    /**
     * Abandons a claim whose statement failed but may have been committed. Its deliveries
     * were not sent; the next rescue records them as `lost`.
     */
    readonly abandonClaims: (claim: {
      readonly endpoints: ReadonlyArray<EndpointId>
      readonly owner: string
      readonly claimedAt: DateTime.Utc
    }) => Effect.Effect<void, StoreUnavailable>
    /** Undoes claims that were not sent: they are due again as before, without a log entry. */
    readonly releaseClaims: (
      claimed: ReadonlyArray<ClaimedDelivery>
    ) => Effect.Effect<void, StoreUnavailable>
    /** Ends attempts: their deliveries have ended, or are due again. */
    readonly record: (
      records: ReadonlyArray<AttemptRecord>
    ) => Effect.Effect<void, StoreUnavailable>
    /**
     * Endpoints with a delivery that falls due after `since` and up to `until` (default: `now`),
     * and the due time of the first delivery after `now`.
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
    /** End times of the attempts that ended since then; a running attempt counts as ended now. */
    readonly endedSince: (
      id: EndpointId,
      since: DateTime.Utc,
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<DateTime.Utc>, StoreUnavailable>
    /**
     * Attempts whose process died, or that were claimed before `claimedBefore`, are recorded as `lost`.
     * They do not count and are due again at once. Handles a bounded number; returns how many, and their endpoints.
     * ADR 0003.
     */
    readonly requeueLost: (
      heartbeatSince: DateTime.Utc,
      claimedBefore: DateTime.Utc,
      now: DateTime.Utc,
      limit: number
    ) => Effect.Effect<
      { readonly rescued: number; readonly endpoints: ReadonlyArray<EndpointId> },
      StoreUnavailable
    >
    /** Skips deliveries that were queued while the transaction that disabled their endpoint ran. */
    readonly skipDisabled: (
      disabledSince: DateTime.Utc,
      now: DateTime.Utc
    ) => Effect.Effect<void, StoreUnavailable>
    /** Queues one event (the test event) for one endpoint, whatever its subscriptions. */
    readonly publishTo: (
      userId: UserId,
      endpointId: EndpointId,
      event: EventBody & { readonly type: string },
      now: DateTime.Utc
    ) => Effect.Effect<DeliveryId, StoreUnavailable>
  }
>()("gateway/webhooks/DeliveryStore") {}
