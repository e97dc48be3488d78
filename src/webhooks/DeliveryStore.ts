import { Context, Schema } from "effect"
import type { DateTime, Effect, Option } from "effect"
import { Bytes, Time } from "../db/Rows.ts"
import type { EventBody } from "../domain/Event.ts"
import { DeliveryId, EndpointId, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"

/** A delivery that this process has claimed and must send now. */
export class ClaimedDelivery extends Schema.Class<ClaimedDelivery>("ClaimedDelivery")({
  id: DeliveryId,
  createdAt: Time,
  /** How many attempts failed before this one: 0 to 5. */
  attempt: Schema.Int,
  /** The number of this attempt in the log. */
  seq: Schema.Int,
  dueAt: Time,
  startedAt: Time,
  body: Bytes,
  endpointId: EndpointId,
  userId: UserId,
  url: Schema.String,
  /** Encrypted, as is `previousSecret`. */
  secret: Bytes,
  // Null comes first: nearly every row has it, and a union tries its members in order
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

/** The queue of deliveries and the log of their attempts. The only writer of these tables. */
export class DeliveryStore extends Context.Service<
  DeliveryStore,
  {
    /**
     * Claims due deliveries of many endpoints, oldest first; for disabled endpoints only those that were resent
     * manually. Never exceeds the rate limit of the sliding minute or the limit of concurrent attempts, both counted
     * over all processes. ADR 0104.
     */
    readonly claim: (claim: {
      readonly wanted: ReadonlyArray<{ readonly endpointId: EndpointId; readonly limit: number }>
      readonly owner: string
      /** Claims deliveries that are due by this time. */
      readonly now: DateTime.Utc
      /** The same moment by the database's clock, by which other processes judge the claim. */
      readonly claimedAt: DateTime.Utc
      /** Called for each endpoint whose capacity is reduced by other processes' attempts. */
      readonly onBusy?: (id: EndpointId) => void
    }) => Effect.Effect<ReadonlyArray<ClaimedDelivery>, StoreUnavailable>
    /**
     * Abandons a claim whose statement failed but may have been committed. Its deliveries were not sent; the next
     * rescue records these attempts as `lost`.
     */
    readonly abandonClaims: (claim: {
      readonly endpoints: ReadonlyArray<EndpointId>
      readonly owner: string
      readonly claimedAt: DateTime.Utc
    }) => Effect.Effect<void, StoreUnavailable>
    /** Undoes claims that were not sent. The deliveries become due again as before, without a log entry. */
    readonly releaseClaims: (
      claimed: ReadonlyArray<ClaimedDelivery>
    ) => Effect.Effect<void, StoreUnavailable>
    /** Records the ends of attempts. Each delivery has then ended or is due again. */
    readonly record: (
      records: ReadonlyArray<AttemptRecord>
    ) => Effect.Effect<void, StoreUnavailable>
    /**
     * Endpoints with a delivery that becomes due after `since` and no later than `until` (default: `now`), and the due
     * time of the first delivery after `now`.
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
    /** The end times of attempts that ended since then. A running attempt counts as ending now. */
    readonly endedSince: (
      id: EndpointId,
      since: DateTime.Utc,
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<DateTime.Utc>, StoreUnavailable>
    /**
     * Records attempts whose process died, or that were claimed before `claimedBefore`, as `lost`. They do not count,
     * and their deliveries are due again at once. Handles a bounded number; returns how many, and their endpoints.
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
    /** Skips deliveries that were queued while the transaction that disabled their endpoint was running. */
    readonly skipDisabled: (
      disabledSince: DateTime.Utc,
      now: DateTime.Utc
    ) => Effect.Effect<void, StoreUnavailable>
    /** Queues one event (the test event) for one endpoint, whatever events it subscribes to. */
    readonly publishTo: (
      userId: UserId,
      endpointId: EndpointId,
      event: EventBody & { readonly type: string },
      now: DateTime.Utc
    ) => Effect.Effect<DeliveryId, StoreUnavailable>
  }
>()("gateway/webhooks/DeliveryStore") {}
