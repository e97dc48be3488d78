import { Cause, Clock, Context, DateTime, Duration, Effect, Exit, Metric, Option } from "effect"
import { Batcher } from "../db/Batcher.ts"
import { retryStore } from "../db/StoreFailures.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import { Process } from "../process/heartbeat/Process.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import type { SecretUnreadable } from "../process/secrets/Secrets.ts"
import { DeliveryStore } from "./DeliveryStore.ts"
import type { ClaimedDelivery, AttemptRecord } from "./DeliveryStore.ts"
import { nextAttemptAt } from "./RetryPolicy.ts"
import { failed } from "./WebhookExchange.ts"
import { WebhookSender } from "./WebhookSender.ts"
import type { AttemptNotStarted } from "./WebhookSender.ts"

/**
 * A claim older than this is not sent. The process was paused or the attempt waited for its user or its origin, and
 * another process may have claimed the delivery in the meantime (a process is dead 10 s after its last heartbeat). ADR
 * 0003.
 */
const claimMillisMax = 8000

/**
 * How many claims one statement releases, and how long a closing actor waits for it. The `Rescuer` requeues the rest.
 */
const releasedPerRunMax = 200
const releaseTimeout = Duration.seconds(3)

/** How many records one statement writes, and how many statements run concurrently. ADR 0114. */
const recordsPerRunMax = 200
export const recordRunsMax = 1

/** How long a closing actor waits for its records. The `Rescuer` requeues deliveries without one. */
const writtenTimeout = Duration.seconds(3)

/** Informs the endpoint's sender about an attempt. */
export interface AttemptObserver {
  /** Called when the exchange with the receiver has ended. */
  readonly ended: (millis: number) => void
  /** Runs when an attempt was never started and its claim has been released. */
  readonly released: Effect.Effect<void>
}

/** Runs attempts, from signing until their outcome is recorded. */
export const makeAttempts = Effect.gen(function* () {
  const store = yield* DeliveryStore
  const sender = yield* WebhookSender
  const process = yield* Process
  const decrypt = yield* makeDecrypt
  const records = yield* makeRecords(store)
  const releaseClaims = yield* makeReleaseClaims(store)

  const send = Effect.fnUntraced(function* (claimed: ClaimedDelivery, onStart: () => void) {
    const now = yield* Clock.currentTimeMillis
    const millis = process.databaseMillis(now)
    const millisLeft = DateTime.toEpochMillis(claimed.startedAt) + claimMillisMax - millis
    if (millisLeft < 0) return notSent
    const overlaps =
      claimed.previousSecretUntil !== null &&
      millis < DateTime.toEpochMillis(claimed.previousSecretUntil)
    return yield* sender.send({
      userId: claimed.userId,
      url: claimed.url,
      secret: yield* decrypt(claimed.secret),
      previousSecret:
        overlaps && claimed.previousSecret !== null
          ? yield* decrypt(claimed.previousSecret)
          : undefined,
      deliveryId: claimed.id,
      body: claimed.body,
      timestampSeconds: Math.floor(millis / 1000),
      startBeforeMillis: now + millisLeft,
      onStart
    })
  })

  const end = (claimed: ClaimedDelivery, observer: AttemptObserver, outcome: AttemptOutcome) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      countAttempt(outcome.failure ?? "delivered")
      const millis = process.databaseMillis(now)
      observer.ended(millis)
      const endedAt = DateTime.makeUnsafe(millis)
      records.add({ claimed, endedAt, outcome, nextDueAt: nextDueAt(claimed, outcome, now) })
    })

  /** Records a started attempt even if the actor closes, and releases one that never started. */
  const conclude = (
    claimed: ClaimedDelivery,
    observer: AttemptObserver,
    isStarted: boolean,
    exit: Exit.Exit<AttemptOutcome, AttemptNotStarted | SecretUnreadable>
  ): Effect.Effect<void> => {
    if (Exit.isSuccess(exit)) return end(claimed, observer, exit.value)
    if (wasNeverStarted(exit.cause, isStarted)) {
      return Effect.andThen(releaseClaims([claimed]), observer.released)
    }
    if (Cause.hasInterruptsOnly(exit.cause)) return end(claimed, observer, movedAway)
    // An internal failure counts as a failed attempt, so that the delivery follows its retry schedule
    return Effect.andThen(
      Effect.logError(`Delivery ${claimed.id} could not be sent`, exit.cause),
      end(claimed, observer, failed("protocol", "internal error before sending"))
    )
  }

  return {
    fairShare: sender.fairShare,
    /** The clock of the sliding window, which counts the attempts of all processes. */
    databaseMillis: process.databaseMillis,
    releaseClaims,
    /** Waits until all records added so far have been written, or until a timeout. */
    written: records.settled.pipe(Effect.timeoutOption(writtenTimeout), Effect.asVoid),
    /** Runs one attempt, from signing until its record is queued for writing. Never fails. */
    attempt: (claimed: ClaimedDelivery, observer: AttemptObserver): Effect.Effect<unknown> =>
      Effect.suspend(() => {
        let isStarted = false
        const sent = send(claimed, () => (isStarted = true))
        return Effect.exit(
          Effect.onExit(sent, (exit) => conclude(claimed, observer, isStarted, exit))
        )
      })
  }
})

/** Undoes claims that were not sent. Has a timeout, because the sender may have to end. */
const makeReleaseClaims = Effect.fnUntraced(function* (store: DeliveryStore["Service"]) {
  const { call } = yield* Batcher.makeDetached({
    itemsMax: releasedPerRunMax,
    runsMax: 1,
    run: (claims: ReadonlyArray<ClaimedDelivery>) =>
      Effect.as(retryStore(store.releaseClaims(claims)), claims)
  })
  return (claims: ReadonlyArray<ClaimedDelivery>): Effect.Effect<void> =>
    Effect.forEach(claims, call, { concurrency: "unbounded", discard: true }).pipe(
      Effect.timeoutOption(releaseTimeout),
      Effect.asVoid
    )
})

/**
 * Writes the records of attempts in order and without delay; records that arrive during a statement share the next one.
 * Detached, so that an actor that ends after its services can still record its attempts. ADR 0003.
 */
const makeRecords = (store: DeliveryStore["Service"]) =>
  Batcher.makeDetached({
    itemsMax: recordsPerRunMax,
    runsMax: recordRunsMax,
    run: (some: ReadonlyArray<AttemptRecord>) =>
      retryStore(Effect.suspend(() => store.record(some))).pipe(
        Effect.catchCause((cause) =>
          Effect.logError(`${some.length} webhook attempts could not be recorded`, cause)
        ),
        Effect.as(some)
      )
  })

/** The wait in the origin's queue timed out, or the actor ended. */
const wasNeverStarted = (
  cause: Cause.Cause<AttemptNotStarted | SecretUnreadable>,
  isStarted: boolean
): boolean =>
  Option.exists(Cause.findErrorOption(cause), ({ _tag }) => _tag === "AttemptNotStarted") ||
  (!isStarted && Cause.hasInterruptsOnly(cause))

const notSent = failed("lost", "the process was paused before it could send; sent again")
const movedAway = failed("lost", "the sending process stopped during this attempt; sent again")

/** Follows the retry schedule. A lost attempt is due again at once and does not count. ADR 0003. */
const nextDueAt = (
  claimed: ClaimedDelivery,
  outcome: AttemptOutcome,
  endedMillis: number
): Option.Option<DateTime.Utc> => {
  if (outcome.failure === "lost") return Option.some(DateTime.makeUnsafe(endedMillis))
  if (outcome.failure === null || outcome.failure === "payload_too_large") return Option.none()
  const next = nextAttemptAt(claimed.attempt + 1, endedMillis)
  return Option.map(next, (millis) => DateTime.makeUnsafe(millis))
}

/** The maximum number of decrypted secrets that one process caches. All attempts to an endpoint use the same secret. */
const cachedSecretsMax = 1000

const makeDecrypt = Effect.gen(function* () {
  const secrets = yield* Secrets
  const cache = new Map<string, string>()
  return (encrypted: Uint8Array) => {
    const { buffer, byteLength, byteOffset } = encrypted
    const key = Buffer.from(buffer, byteOffset, byteLength).toString("latin1")
    const known = cache.get(key)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(secrets.decrypt(encrypted), (secret) => {
      if (cache.size >= cachedSecretsMax) cache.clear()
      cache.set(key, secret)
      return secret
    })
  }
})

const attemptsTotal = Metric.counter("gateway_delivery_attempts_total", {
  description: "Finished webhook attempts by outcome: delivered, or the class of failure",
  incremental: true
})
const none = Context.empty()

const countAttempt = (outcome: string): void =>
  Metric.withAttributes(attemptsTotal, { outcome }).updateUnsafe(1, none)
