import { Context, DateTime, Duration, Effect, FiberSet, Layer, Option, Queue } from "effect"
import type { Scope } from "effect"
import { nextAttemptAt } from "../delivery/RetryPolicy.ts"
import { failed } from "../delivery/WebhookExchange.ts"
import { WebhookSender } from "../delivery/WebhookSender.ts"
import type { EndpointId } from "../domain/Ids.ts"
import { deliveriesPerEndpointPerMinuteMax } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import { DeliveryStore } from "../store/DeliveryStore.ts"
import type { Claimed } from "../store/DeliveryStore.ts"
import { Process } from "./Process.ts"
import { retryStore } from "./RetryStore.ts"
import { Secrets } from "./Secrets.ts"
import { SlidingWindow } from "./SlidingWindow.ts"

/** Attempts under way to one endpoint at once: a slow receiver slows itself, within this bound. */
const attemptsAtOnceMax = 16

const windowMillis = 60_000

/** The sending side of one endpoint, alive as long as its actor. */
export interface DeliveryLane {
  /**
   * Sends what is due until nothing is and all attempts have ended. While one call does so, another
   * only makes it look again, and returns at once.
   */
  readonly deliver: Effect.Effect<void, StoreUnavailable>
}

/**
 * Sends webhooks: claims due deliveries of an endpoint, signs, sends, records. Fan-out happens in
 * the transaction that moves the task (`event_publish`). Architecture, rule 6; contract 8.
 */
export class WebhookDispatcher extends Context.Service<
  WebhookDispatcher,
  {
    /** Only the endpoint's actor opens its lane, so that the sliding limit is exact. */
    readonly open: (id: EndpointId) => Effect.Effect<DeliveryLane, StoreUnavailable, Scope.Scope>
  }
>()("gateway/services/WebhookDispatcher") {
  static readonly layer = Layer.effect(
    WebhookDispatcher,
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const process = yield* Process
      const attempt = yield* makeAttempt

      const open = Effect.fnUntraced(function* (id: EndpointId) {
        const since = DateTime.subtractDuration(yield* DateTime.now, Duration.millis(windowMillis))
        const starts = yield* store.startedSince(id, since)
        const window = new SlidingWindow(
          deliveriesPerEndpointPerMinuteMax,
          windowMillis,
          starts.map(DateTime.toEpochMillis)
        )
        const underWay = yield* FiberSet.make<void>()
        const signals = yield* Queue.sliding<void>(1)
        const signal = Effect.asVoid(Queue.offer(signals, undefined))
        let sending = false
        let lookAgain = false

        /** Starts as many due attempts as slots and the limit allow; answers how many. */
        const startDue = Effect.fnUntraced(
          function* (limit: number) {
            lookAgain = false
            const now = yield* DateTime.now
            const claimed = yield* store.claim({ endpointId: id, owner: process.id, now, limit })
            window.note(DateTime.toEpochMillis(now), claimed.length)
            yield* Effect.forEach(claimed, (one) =>
              FiberSet.run(
                underWay,
                Effect.ensuring(Effect.interruptible(attempt(id, one)), signal)
              )
            )
            return claimed.length
          },
          (start) => Effect.uninterruptible(start)
        )

        const send = Effect.gen(function* () {
          while (true) {
            const now = DateTime.toEpochMillis(yield* DateTime.now)
            const busy = yield* FiberSet.size(underWay)
            const limit = Math.min(attemptsAtOnceMax - busy, window.room(now))
            const started = limit > 0 ? yield* startDue(limit) : 0
            if (started > 0 || (limit > 0 && lookAgain)) continue
            if (limit > 0 && busy === 0) return
            const wait = window.waitMillis(now)
            yield* Effect.raceFirst(
              Queue.take(signals),
              wait > 0 ? Effect.sleep(Duration.millis(wait)) : Effect.never
            )
          }
        })

        /** Looks and leaves in one step, so that no call falls between the last look and the end. */
        const sendOn: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
          if (lookAgain) return Effect.andThen(send, sendOn)
          sending = false
          return Effect.void
        })

        const deliver = Effect.suspend(() => {
          lookAgain = true
          if (sending) return signal
          sending = true
          return Effect.onError(sendOn, () =>
            Effect.sync(() => {
              sending = false
            })
          )
        })
        return { deliver }
      })

      return WebhookDispatcher.of({ open })
    })
  )
}

/** One attempt from signing to its record; never fails. */
const makeAttempt = Effect.gen(function* () {
  const store = yield* DeliveryStore
  const sender = yield* WebhookSender
  const secrets = yield* Secrets

  const send = Effect.fnUntraced(function* (claimed: Claimed) {
    const now = yield* DateTime.now
    const overlaps =
      claimed.previousSecretUntil !== null && DateTime.isLessThan(now, claimed.previousSecretUntil)
    return yield* sender.send({
      url: claimed.url,
      secret: yield* secrets.decrypt(claimed.secret),
      previousSecret:
        overlaps && claimed.previousSecret !== null
          ? yield* secrets.decrypt(claimed.previousSecret)
          : undefined,
      deliveryId: claimed.id,
      body: claimed.body,
      timestampSeconds: Math.floor(DateTime.toEpochMillis(now) / 1000)
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

  const handBack = (claimed: Claimed) =>
    DateTime.now.pipe(
      Effect.flatMap((now) => store.release(claimed, now)),
      Effect.ignore
    )

  return Effect.fnUntraced(
    function* (endpointId: EndpointId, claimed: Claimed) {
      const outcome = yield* outcomeOf(claimed)
      const endedAt = yield* DateTime.now
      const next =
        outcome.failure === null || outcome.failure === "payload_too_large"
          ? Option.none<number>()
          : nextAttemptAt(claimed.attempt + 1, DateTime.toEpochMillis(endedAt))
      const nextDueAt = Option.map(next, (millis) => DateTime.makeUnsafe(millis))
      yield* retryStore(store.record({ endpointId, claimed, endedAt, outcome, nextDueAt }))
    },
    (attempt, _endpointId, claimed) => Effect.onInterrupt(attempt, () => handBack(claimed))
  )
})
