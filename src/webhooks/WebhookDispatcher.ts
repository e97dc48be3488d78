import { Context, DateTime, Duration, Effect, Layer, Queue } from "effect"
import type { Scope } from "effect"
import { Batcher } from "../db/Batcher.ts"
import { retryStore } from "../db/StoreFailures.ts"
import type { EndpointId } from "../domain/Ids.ts"
import {
  deliveriesPerEndpointAtOnceMax as atOnceMax,
  deliveriesPerEndpointPerMinuteMax
} from "../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Drain } from "../process/Drain.ts"
import { Process } from "../process/heartbeat/Process.ts"
import { makeFiberSlots } from "../process/SlotArray.ts"
import { DeliveryStore } from "./DeliveryStore.ts"
import type { ClaimedDelivery } from "./DeliveryStore.ts"
import { SlidingWindow } from "./SlidingWindow.ts"
import { makeAttempts, recordRunsMax } from "./WebhookAttempt.ts"
import type { AttemptObserver } from "./WebhookAttempt.ts"

/** If other processes use all slots of an endpoint, it is checked again after this time. */
const busyMillis = 500

const windowMillis = 60_000

/** How many attempts of an endpoint may start at the given time. */
type Capacity = (millis: number) => number

/** Sends the deliveries to one endpoint in this process. Its only message is `deliver`. */
export interface EndpointActor {
  /** Sends due deliveries in the background until none is due. Returns immediately. */
  readonly deliver: Effect.Effect<void>
}

/**
 * Sends webhooks: claims due deliveries of an endpoint, signs and sends them, and records the outcomes. The deliveries
 * themselves are created by the transaction that changes the task's state. docs/reference/webhooks.md#delivery
 */
export class WebhookDispatcher extends Context.Service<
  WebhookDispatcher,
  {
    /**
     * Opens the actor of an endpoint. Must be open only once per endpoint, so that the sliding window is exact. For
     * `EndpointActors`.
     */
    readonly open: (id: EndpointId) => Effect.Effect<EndpointActor, StoreUnavailable, Scope.Scope>
  }
>()("gateway/webhooks/WebhookDispatcher") {
  static readonly layer = Layer.effect(
    WebhookDispatcher,
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const claim = yield* makeClaim
      const attempts = yield* makeAttempts
      const drain = yield* Drain
      yield* Effect.forkScoped(warmUp(store))

      return WebhookDispatcher.of({
        open: Effect.fnUntraced(function* (id) {
          const now = DateTime.makeUnsafe(attempts.databaseMillis())
          const since = DateTime.subtractDuration(now, Duration.millis(windowMillis))
          const ends = yield* store.endedSince(id, since, now)
          const window = new SlidingWindow(
            deliveriesPerEndpointPerMinuteMax,
            windowMillis,
            ends.map(DateTime.toEpochMillis)
          )
          return yield* makeEndpointActor(
            id,
            window,
            (capacity, onBusy) => claim({ endpointId: id, capacity, onBusy }),
            attempts
          ).pipe(Effect.provideService(Drain, drain))
        })
      })
    })
  )
}

type ClaimFor = (
  capacity: Capacity,
  onBusy: () => void
) => Effect.Effect<ReadonlyArray<ClaimedDelivery>, StoreUnavailable>

const claimUpTo = Effect.fnUntraced(function* (claim: ClaimFor, capacityAt: Capacity) {
  let capacity = 0
  let isBusy = false
  const claimed = yield* claim(
    (millis) => (capacity = capacityAt(millis)),
    () => (isBusy = true)
  )
  return { capacity, claimed, isBusy }
})

/**
 * Waits for a signal, at most this many milliseconds; 0 means without a limit. Not a `DueLoop`, because the actor ends
 * when nothing is left, and because every delivery passes through here.
 */
const signalled = (signals: Queue.Queue<void>, millis: number) => {
  const signal = Queue.take(signals)
  return millis > 0 ? Effect.raceFirst(signal, Effect.sleep(Duration.millis(millis))) : signal
}

const makeEndpointActor = Effect.fnUntraced(function* (
  id: EndpointId,
  window: SlidingWindow,
  claim: ClaimFor,
  attempts: Effect.Success<typeof makeAttempts>
) {
  const drain = yield* Drain
  yield* Effect.addFinalizer(() => attempts.written)
  // In the background, so that a message does not block its sender until everything is sent
  const run = yield* makeFiberSlots()
  const isClosing = yield* makeIsClosing
  const signals = yield* Queue.sliding<void>(1)
  const signal = Effect.asVoid(Queue.offer(signals, undefined))
  /** The number of running attempts. Their records are written while other attempts start. */
  let running = 0
  let mustRecheck = false
  let mayHaveMore = true
  /** Until this time, other processes are assumed to use all slots. */
  let busyUntil = 0
  /** The URL of the last attempt; empty before the first. */
  let url = ""

  const attemptEnded = () => {
    running -= 1
    drain.count("delivery", -1)
    // Free capacity alone is not a reason to continue if nothing is left to send
    if (running === 0 || mayHaveMore || mustRecheck) Queue.offerUnsafe(signals, undefined)
  }

  const observer: AttemptObserver = {
    ended: (millis) => {
      window.end(millis)
      attemptEnded()
    },
    released: Effect.suspend(() => {
      window.cancel()
      attemptEnded()
      return deliver
    })
  }

  const capacityAt: Capacity = (millis) => {
    const atOnce = drain.isDraining() ? 0 : Math.min(atOnceMax, attempts.fairShare(url))
    return Math.max(0, Math.min(atOnce - running, window.capacity(millis)))
  }

  /** Claims and starts as many due attempts as capacity allows at the time of the claim. */
  const startDue = Effect.gen(function* () {
    mustRecheck = false
    const { capacity, claimed, isBusy } = yield* claimUpTo(claim, capacityAt)
    mayHaveMore = isBusy || claimed.length === capacity
    if (isBusy) busyUntil = attempts.databaseMillis() + busyMillis
    url = claimed.at(-1)?.url ?? url
    if (isClosing()) return yield* attempts.releaseClaims(claimed)
    running += claimed.length
    drain.count("delivery", claimed.length)
    window.begin(claimed.length)
    for (const one of claimed) run(attempts.attempt(one, observer))
    // Uninterruptible, because a claim must be sent or released even if the actor closes in the meantime
  }).pipe(Effect.uninterruptible)

  const send = Effect.gen(function* () {
    mayHaveMore = true
    while (true) {
      const now = attempts.databaseMillis()
      const hasCapacity = capacityAt(now) > 0
      const isBusy = Math.abs(busyUntil - now) <= busyMillis && busyUntil > now
      if (hasCapacity && !isBusy && (mayHaveMore || mustRecheck)) {
        yield* startDue
        continue
      }
      if (running === 0 && hasCapacity && !isBusy) return
      yield* signalled(signals, isBusy ? busyUntil - now : window.waitMillis(now))
    }
  })

  const start = onceAtATime(id, run, send, () => mustRecheck)
  const deliver: Effect.Effect<void> = Effect.suspend(() => {
    mustRecheck = true
    return start() ? Effect.void : signal
  })
  return { deliver } satisfies EndpointActor
})

/** Starts `send` in the background. `false`: it is already running and will check again before it ends. */
const onceAtATime = (
  id: EndpointId,
  run: (effect: Effect.Effect<void>) => unknown,
  send: Effect.Effect<void, StoreUnavailable>,
  mustRecheck: () => boolean
) => {
  let isSending = false
  /** Checks and ends in one synchronous step, so that no call can come in between. */
  const sendUntilDone: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
    if (mustRecheck()) return Effect.andThen(send, sendUntilDone)
    isSending = false
    return Effect.void
  })
  const sendAll = sendUntilDone.pipe(
    Effect.catchCause((cause) => {
      isSending = false
      return Effect.logWarning(`Endpoint ${id} stopped sending`, cause)
    })
  )
  return (): boolean => {
    if (isSending) return false
    isSending = true
    run(sendAll)
    return true
  }
}

/** Whether the scope is closing. If so, the sender's fibers have been interrupted and no other may start. */
const makeIsClosing = Effect.gen(function* () {
  let isClosing = false
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosing = true
    })
  )
  return () => isClosing
})

/**
 * A connection plans these statements at first use, which takes longer than a delivery may be delayed. Running empty
 * statements on as many connections as will work concurrently makes the plans in advance.
 */
const warmUp = (store: DeliveryStore["Service"]) =>
  Effect.gen(function* () {
    const now = yield* DateTime.now
    yield* store.claim({ wanted: [], owner: "", now, claimedAt: now })
    yield* store.record([])
  }).pipe(
    Effect.replicateEffect(claimsMax + recordRunsMax, { concurrency: "unbounded", discard: true }),
    // Ignored, because the first real statement will report an outage
    Effect.ignore
  )

/** How many endpoints one statement claims for, and how many statements run concurrently. ADR 0114. */
const claimEndpointsMax = 100
const claimsMax = 1

/** The minimum time between two claims, so that under load one claim serves many endpoints. ADR 0114. */
const claimIntervalMillis = 10

/** Claims for all endpoint actors of this process together. */
const makeClaim = Effect.gen(function* () {
  const store = yield* DeliveryStore
  const process = yield* Process

  /** Abandons a failed claim, because it may have been committed and its deliveries would never be sent. */
  const abandonClaims = (
    wanted: ReadonlyArray<{ readonly endpointId: EndpointId }>,
    claimedAt: DateTime.Utc
  ) => {
    const endpoints = wanted.map((one) => one.endpointId)
    // Detached, because the store is unavailable and the senders may have to end before it recovers
    return Effect.forkDetach(
      retryStore(store.abandonClaims({ endpoints, owner: process.id, claimedAt }))
    )
  }

  const { call } = yield* Batcher.makeDetached({
    itemsMax: claimEndpointsMax,
    runsMax: claimsMax,
    intervalMillis: claimIntervalMillis,
    run: Effect.fnUntraced(function* (
      requests: ReadonlyArray<{
        readonly endpointId: EndpointId
        readonly capacity: Capacity
        readonly onBusy: () => void
      }>
    ) {
      const now = yield* DateTime.now
      const at = process.databaseMillis(DateTime.toEpochMillis(now))
      const claimedAt = DateTime.makeUnsafe(at)
      const wanted = requests.map((it) => ({ endpointId: it.endpointId, limit: it.capacity(at) }))
      const claimed = yield* store
        .claim({
          wanted,
          owner: process.id,
          now,
          claimedAt,
          onBusy: (id) => requests.find(({ endpointId }) => endpointId === id)?.onBusy()
        })
        .pipe(Effect.tapError(() => abandonClaims(wanted, claimedAt)))
      const found = Map.groupBy(claimed, ({ endpointId }) => endpointId)
      return wanted.map(({ endpointId }) => {
        const own = found.get(endpointId) ?? []
        // If an endpoint was requested twice, the first request gets all of its deliveries
        found.delete(endpointId)
        return own
      })
    })
  })
  return call
})
