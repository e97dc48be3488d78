import { Cause, Clock, DateTime, Duration, Effect, Exit, Option } from "effect"
import { Batcher } from "../db/Batcher.ts"
import { retryStore } from "../db/StoreFailures.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import { Secrets } from "../process/Secrets.ts"
import type { SecretUnreadable } from "../process/Secrets.ts"
import { DeliveryStore } from "./DeliveryStore.ts"
import type { Claimed, Recorded } from "./DeliveryStore.ts"
import { nextAttemptAt } from "./RetryPolicy.ts"
import { failed } from "./WebhookExchange.ts"
import { WebhookSender } from "./WebhookSender.ts"
import type { NoPlace } from "./WebhookSender.ts"

/**
 * A claim older than this is not sent any more: the process was paused, or the attempt waited for a
 * place, and another may have taken the delivery over (heartbeats count as dead after 10 s). ADR 0052.
 */
const claimMillisMax = 8000

/** Claims given back by one statement, and how long an actor that moves away tries; a sweep does it later. */
const givenBackPerRunMax = 200
const giveBackBound = Duration.seconds(3)

/** Records written by one statement, and statements under way at once. ADR 0050. */
const recordsPerRunMax = 200
export const recordRunsMax = 1

/** How long an actor that moves away waits for its records; a sweep frees what is missing later. */
const writtenBound = Duration.seconds(3)

/** What a lane is told of an attempt. */
export interface AttemptWatch {
  /** The receiver is done with it. */
  readonly ended: (millis: number) => void
  /** It was never begun, and another claim may take the delivery. */
  readonly givenBack: Effect.Effect<void>
}

/** Attempts from signing to their record. */
export const makeAttempts = Effect.gen(function* () {
  const store = yield* DeliveryStore
  const sender = yield* WebhookSender
  const open = yield* makeOpener
  const records = yield* makeRecords(store)
  const claims = yield* Batcher.makeDetached({
    itemsMax: givenBackPerRunMax,
    runsMax: 1,
    run: (all: ReadonlyArray<Claimed>) => Effect.as(retryStore(store.giveBack(all)), all)
  })

  const send = Effect.fnUntraced(function* (claimed: Claimed, onBegin: () => void) {
    const millis = yield* Clock.currentTimeMillis
    const beginBeforeMillis = DateTime.toEpochMillis(claimed.startedAt) + claimMillisMax
    if (millis > beginBeforeMillis) return notSent
    const overlaps =
      claimed.previousSecretUntil !== null &&
      millis < DateTime.toEpochMillis(claimed.previousSecretUntil)
    return yield* sender.send({
      url: claimed.url,
      secret: yield* open(claimed.secret),
      previousSecret:
        overlaps && claimed.previousSecret !== null
          ? yield* open(claimed.previousSecret)
          : undefined,
      deliveryId: claimed.id,
      body: claimed.body,
      timestampSeconds: Math.floor(millis / 1000),
      beginBeforeMillis,
      onBegin
    })
  })

  /** Claims that were not sent are as if they had not been made. Bounded: the lane may have to end. */
  const giveBack = (all: ReadonlyArray<Claimed>): Effect.Effect<void> =>
    Effect.forEach(all, claims.call, { concurrency: "unbounded", discard: true }).pipe(
      Effect.timeoutOption(giveBackBound),
      Effect.asVoid
    )

  const end = (claimed: Claimed, watch: AttemptWatch, outcome: AttemptOutcome) =>
    Effect.map(Clock.currentTimeMillis, (millis) => {
      watch.ended(millis)
      const endedAt = DateTime.makeUnsafe(millis)
      records.add({ claimed, endedAt, outcome, nextDueAt: nextDueAt(claimed, outcome, millis) })
    })

  /** What was sent is recorded, even if the actor moves away meanwhile; what was not begun is given back. */
  const conclude = (
    claimed: Claimed,
    watch: AttemptWatch,
    isBegun: boolean,
    exit: Exit.Exit<AttemptOutcome, NoPlace | SecretUnreadable>
  ): Effect.Effect<void> => {
    if (Exit.isSuccess(exit)) return end(claimed, watch, exit.value)
    if (foundNoPlace(exit.cause, isBegun)) {
      return Effect.andThen(giveBack([claimed]), watch.givenBack)
    }
    if (Cause.hasInterruptsOnly(exit.cause)) return end(claimed, watch, movedAway)
    // Our own fault counts as a failed attempt, so that the delivery goes on by its schedule.
    return Effect.andThen(
      Effect.logError(`Delivery ${claimed.id} could not be sent`, exit.cause),
      end(claimed, watch, failed("protocol", "internal error before sending"))
    )
  }

  return {
    shareOf: sender.shareOf,
    giveBack,
    /** Waits until all records that were added before are written, or until a bound. */
    written: records.settled.pipe(Effect.timeoutOption(writtenBound), Effect.asVoid),
    /** One attempt, from signing until its record is to be written in the background; never fails. */
    attempt: (claimed: Claimed, watch: AttemptWatch): Effect.Effect<unknown> =>
      Effect.suspend(() => {
        let isBegun = false
        const sent = send(claimed, () => (isBegun = true))
        return Effect.exit(Effect.onExit(sent, (exit) => conclude(claimed, watch, isBegun, exit)))
      })
  }
})

/**
 * Writes the records of attempts, in their order, at once; those that arrive meanwhile share the next
 * statement. Detached, so that an actor that ends after its services still records what it sent. ADR 0117.
 */
const makeRecords = (store: DeliveryStore["Service"]) =>
  Batcher.makeDetached({
    itemsMax: recordsPerRunMax,
    runsMax: recordRunsMax,
    run: (some: ReadonlyArray<Recorded>) =>
      retryStore(Effect.suspend(() => store.record(some))).pipe(
        Effect.catchCause((cause) =>
          Effect.logError(`${some.length} webhook attempts could not be recorded`, cause)
        ),
        Effect.as(some)
      )
  })

/** In time, or before its actor ended. */
const foundNoPlace = (cause: Cause.Cause<NoPlace | SecretUnreadable>, isBegun: boolean): boolean =>
  Option.exists(Cause.findErrorOption(cause), ({ _tag }) => _tag === "NoPlace") ||
  (!isBegun && Cause.hasInterruptsOnly(cause))

const notSent = failed("lost", "the process was paused before it could send; sent again")
const movedAway = failed("lost", "the sending process stopped during this attempt; sent again")

/** By the schedule; a lost attempt is due again at once, uncounted (ADR 0003). */
const nextDueAt = (
  claimed: Claimed,
  outcome: AttemptOutcome,
  endedMillis: number
): Option.Option<DateTime.Utc> => {
  if (outcome.failure === "lost") return Option.some(DateTime.makeUnsafe(endedMillis))
  if (outcome.failure === null || outcome.failure === "payload_too_large") return Option.none()
  const next = nextAttemptAt(claimed.attempt + 1, endedMillis)
  return Option.map(next, (millis) => DateTime.makeUnsafe(millis))
}

/** Secrets that were decrypted lately: an endpoint's is the same on every attempt. */
const openedMax = 1000

const makeOpener = Effect.gen(function* () {
  const secrets = yield* Secrets
  const opened = new Map<string, string>()
  return (sealed: Uint8Array) => {
    const key = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength).toString("latin1")
    const known = opened.get(key)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(secrets.decrypt(sealed), (secret) => {
      if (opened.size >= openedMax) opened.clear()
      opened.set(key, secret)
      return secret
    })
  }
})
