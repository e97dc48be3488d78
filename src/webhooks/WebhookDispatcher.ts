import { Context, DateTime, Duration, Effect, Layer, Queue } from "effect"
import type { Scope } from "effect"
import { Batcher } from "../db/Batcher.ts"
import { retryStore } from "../db/StoreFailures.ts"
import type { EndpointId } from "../domain/Ids.ts"
import { deliveriesPerEndpointPerMinuteMax } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { makeFiberPlaces } from "../process/Places.ts"
import { Process } from "../process/Process.ts"
import { DeliveryStore } from "./DeliveryStore.ts"
import type { Claimed } from "./DeliveryStore.ts"
import { LocalSenders } from "./LocalSenders.ts"
import { SlidingWindow } from "./SlidingWindow.ts"
import { makeAttempts, recordRunsMax } from "./WebhookAttempt.ts"
import type { AttemptWatch } from "./WebhookAttempt.ts"

/** Attempts under way to one endpoint at once: a slow receiver slows itself, within this bound. */
const attemptsAtOnceMax = 16

const windowMillis = 60_000

/** How many attempts of a lane may begin at this time. */
type Room = (millis: number) => number

/** The sending side of one endpoint, alive as long as its actor. */
export interface EndpointSender {
  /** Something may be due: sends it in the background until nothing is. Returns at once. */
  readonly deliver: Effect.Effect<void>
}

/**
 * Sends webhooks: claims due deliveries of an endpoint, signs, sends, records. Fan-out happens in
 * the transaction that moves the task (`event_publish`). Architecture, rule 6; contract 8.
 */
export class WebhookDispatcher extends Context.Service<
  WebhookDispatcher,
  {
    /** Only the endpoint's actor opens its lane, so that the sliding limit is exact. */
    readonly open: (id: EndpointId) => Effect.Effect<EndpointSender, StoreUnavailable, Scope.Scope>
  }
>()("gateway/webhooks/WebhookDispatcher") {
  static readonly layer = Layer.effect(
    WebhookDispatcher,
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const claim = yield* makeClaim
      const attempts = yield* makeAttempts
      const lanes = yield* LocalSenders
      yield* Effect.forkScoped(warmUp(store))

      return WebhookDispatcher.of({
        open: Effect.fnUntraced(function* (id) {
          const now = yield* DateTime.now
          const since = DateTime.subtractDuration(now, Duration.millis(windowMillis))
          const ends = yield* store.endedSince(id, since, now)
          const window = new SlidingWindow(
            deliveriesPerEndpointPerMinuteMax,
            windowMillis,
            ends.map(DateTime.toEpochMillis)
          )
          const lane = yield* makeLane(
            id,
            window,
            (room) => claim({ endpointId: id, room }),
            attempts
          )
          return { deliver: yield* lanes.register(id, lane.deliver) }
        })
      })
    })
  )
}

const makeLane = Effect.fnUntraced(function* (
  id: EndpointId,
  window: SlidingWindow,
  claim: (room: Room) => Effect.Effect<ReadonlyArray<Claimed>, StoreUnavailable>,
  attempts: Effect.Success<typeof makeAttempts>
) {
  yield* Effect.addFinalizer(() => attempts.written)
  // In the background: a message that took as long as the sending would hold up the actor's end.
  // Whoever wakes the lane, it runs with what its actor has.
  const run = yield* makeFiberPlaces
  const isClosing = yield* makeIsClosing
  const signals = yield* Queue.sliding<void>(1)
  const signal = Effect.asVoid(Queue.offer(signals, undefined))
  /** Attempts under way at the receiver. Their records are written while others begin. */
  let busy = 0
  let lookAgain = false
  let mayHaveMore = true
  /** Where the last attempt went; nowhere yet. */
  let url = ""

  const freed = () => {
    busy -= 1
    // A place alone is nothing to wake up for.
    if (busy === 0 || mayHaveMore || lookAgain) Queue.offerUnsafe(signals, undefined)
  }

  const watch: AttemptWatch = {
    ended: (millis) => {
      window.end(millis)
      freed()
    },
    givenBack: Effect.suspend(() => {
      window.giveBack()
      freed()
      return deliver
    })
  }

  const roomAt = (millis: number) => {
    const atOnce = Math.min(attemptsAtOnceMax, attempts.shareOf(url))
    return Math.max(0, Math.min(atOnce - busy, window.room(millis)))
  }

  /** Starts as many due attempts as there is room for when they are claimed. */
  const startDue = Effect.gen(function* () {
    lookAgain = false
    let room = 0
    const claimed = yield* claim((millis) => (room = roomAt(millis)))
    mayHaveMore = claimed.length === room
    url = claimed.at(-1)?.url ?? url
    if (isClosing()) return yield* attempts.giveBack(claimed)
    busy += claimed.length
    window.begin(claimed.length)
    for (const one of claimed) run(attempts.attempt(one, watch))
    // What is claimed must be sent or given back, even if the actor moves away just now.
  }).pipe(Effect.uninterruptible)

  const send = Effect.gen(function* () {
    mayHaveMore = true
    while (true) {
      const now = DateTime.toEpochMillis(yield* DateTime.now)
      const hasRoom = roomAt(now) > 0
      if (hasRoom && (mayHaveMore || lookAgain)) {
        yield* startDue
        continue
      }
      if (busy === 0 && hasRoom) return
      const wait = window.waitMillis(now)
      const signalled = Queue.take(signals)
      yield* wait > 0 ? Effect.raceFirst(signalled, Effect.sleep(Duration.millis(wait))) : signalled
    }
  })

  const begin = onceAtATime(id, run, send, () => lookAgain)
  const deliver: Effect.Effect<void> = Effect.suspend(() => {
    lookAgain = true
    return begin() ? Effect.void : signal
  })
  return { deliver } satisfies EndpointSender
})

/** Begins to send in the background; false: that is under way, and looks once more before its end. */
const onceAtATime = (
  id: EndpointId,
  run: (effect: Effect.Effect<void>) => unknown,
  send: Effect.Effect<void, StoreUnavailable>,
  hasToLook: () => boolean
) => {
  let isSending = false
  /** Looks and leaves in one step, so that no call falls between the last look and the end. */
  const sendOn: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
    if (hasToLook()) return Effect.andThen(send, sendOn)
    isSending = false
    return Effect.void
  })
  const sendAll = sendOn.pipe(
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

/** Is the scope being closed? Then a lane's fibers are interrupted, and none is begun any more. */
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
 * Each connection to the store plans these statements when it first sees them, which takes longer than
 * a delivery may be late: nothing is claimed and recorded on as many as work at once.
 */
const warmUp = (store: DeliveryStore["Service"]) =>
  Effect.gen(function* () {
    const now = yield* DateTime.now
    yield* store.claim({ wanted: [], owner: "", now })
    yield* store.record([])
  }).pipe(
    Effect.replicateEffect(claimsMax + recordRunsMax, { concurrency: "unbounded", discard: true }),
    // An outage is told by those who have something to do
    Effect.ignore
  )

/** Endpoints served by one statement, and statements under way at once. ADR 0050. */
const claimEndpointsMax = 100
const claimsMax = 1

/** Claims begin this far apart, so that under load one serves many lanes. ADR 0117. */
const claimIntervalMillis = 10

/** Claims for all lanes of this process together. */
const makeClaim = Effect.gen(function* () {
  const store = yield* DeliveryStore
  const process = yield* Process

  /** The claim may have been committed before its answer was lost; nobody would send those. */
  const abandon = (
    wanted: ReadonlyArray<{ readonly endpointId: EndpointId }>,
    claimedAt: DateTime.Utc
  ) => {
    const endpoints = wanted.map((one) => one.endpointId)
    // On its own: the store is away, and the lanes may have to end before it is back.
    return Effect.forkDetach(retryStore(store.abandon({ endpoints, owner: process.id, claimedAt })))
  }

  const { call } = yield* Batcher.makeDetached({
    itemsMax: claimEndpointsMax,
    runsMax: claimsMax,
    intervalMillis: claimIntervalMillis,
    run: Effect.fnUntraced(function* (
      asked: ReadonlyArray<{ readonly endpointId: EndpointId; readonly room: Room }>
    ) {
      const now = yield* DateTime.now
      const wanted = asked.map(({ endpointId, room }) => ({
        endpointId,
        limit: room(DateTime.toEpochMillis(now))
      }))
      const claimed = yield* store
        .claim({ wanted, owner: process.id, now })
        .pipe(Effect.tapError(() => abandon(wanted, now)))
      const found = new Map<EndpointId, Array<Claimed>>()
      for (const one of claimed) {
        const list = found.get(one.endpointId)
        if (list === undefined) found.set(one.endpointId, [one])
        else list.push(one)
      }
      return wanted.map(({ endpointId }) => {
        const mine = found.get(endpointId) ?? []
        // Asked for twice, they go to the first.
        found.delete(endpointId)
        return mine
      })
    })
  })
  return call
})
