import { Clock, DateTime, Duration, Effect, Option } from "effect"
import { nextAttemptAt } from "../delivery/RetryPolicy.ts"
import { failed } from "../delivery/WebhookExchange.ts"
import { WebhookSender } from "../delivery/WebhookSender.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import { DeliveryStore } from "../store/DeliveryStore.ts"
import type { Claimed, Recorded } from "../store/DeliveryStore.ts"
import { makeBatch } from "./Batch.ts"
import { retryStore } from "./RetryStore.ts"
import { Secrets } from "./Secrets.ts"

/**
 * A claim older than this is not sent any more: the process was paused, and another may have taken
 * the delivery over (heartbeats count as dead after 10 s). ADR 0052.
 */
const claimMillisMax = 8000

/** Records written by one statement, and statements under way at once. ADR 0050. */
const recordsPerRunMax = 200
export const recordRunsMax = 1

/** How long an actor that moves away tries to give its attempts back; a sweep does it later. */
const giveBackBound = Duration.seconds(3)

/** One attempt from signing to its record; never fails. `ended` runs once the receiver is done with it. */
export const makeAttempt = Effect.gen(function* () {
  const store = yield* DeliveryStore
  const sender = yield* WebhookSender
  const open = yield* makeOpener
  const record = yield* makeBatch({
    itemsMax: recordsPerRunMax,
    runsMax: recordRunsMax,
    run: (all: ReadonlyArray<Recorded>) => Effect.as(retryStore(store.record(all)), all)
  })

  const send = Effect.fnUntraced(function* (claimed: Claimed) {
    const millis = yield* Clock.currentTimeMillis
    if (millis - DateTime.toEpochMillis(claimed.startedAt) > claimMillisMax) return notSent
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
      timestampSeconds: Math.floor(millis / 1000)
    })
  })

  /** Our own fault counts as a failed attempt, so that the delivery goes on by its schedule. */
  const outcomeOf = (claimed: Claimed): Effect.Effect<AttemptOutcome> =>
    send(claimed).pipe(
      Effect.catchCause((cause) =>
        Effect.as(
          Effect.logError(`Delivery ${claimed.id} could not be sent`, cause),
          failed("protocol", "internal error before sending")
        )
      )
    )

  const end = Effect.fnUntraced(function* (claimed: Claimed, outcome: AttemptOutcome) {
    const endedAt = yield* DateTime.now
    yield* record({ claimed, endedAt, outcome, nextDueAt: nextDueAt(claimed, outcome, endedAt) })
  })

  /** What was sent is recorded, even if the actor moves away meanwhile. */
  const endSurely = (claimed: Claimed, outcome: AttemptOutcome) =>
    Effect.onInterrupt(end(claimed, outcome), () => lastly(claimed, outcome))

  const lastly = (claimed: Claimed, outcome: AttemptOutcome) =>
    Effect.timeoutOption(end(claimed, outcome), giveBackBound)

  return (claimed: Claimed, ended: Effect.Effect<void>): Effect.Effect<void> =>
    outcomeOf(claimed).pipe(
      Effect.ensuring(ended),
      Effect.onInterrupt(() => lastly(claimed, movedAway)),
      Effect.flatMap((outcome) => endSurely(claimed, outcome))
    )
})

const notSent = failed("lost", "the process was paused before it could send; sent again")
const movedAway = failed("lost", "the sending process stopped during this attempt; sent again")

/** By the schedule; a lost attempt is due again at once, uncounted (ADR 0003). */
const nextDueAt = (
  claimed: Claimed,
  outcome: AttemptOutcome,
  endedAt: DateTime.Utc
): Option.Option<DateTime.Utc> => {
  if (outcome.failure === "lost") return Option.some(endedAt)
  if (outcome.failure === null || outcome.failure === "payload_too_large") return Option.none()
  const next = nextAttemptAt(claimed.attempt + 1, DateTime.toEpochMillis(endedAt))
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
