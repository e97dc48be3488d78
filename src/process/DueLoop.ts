import { Clock, Duration, Effect, Latch } from "effect"

export interface DueWork<E, R> {
  /** Takes what is due. Returns when to look again, in Unix milliseconds; `Infinity`: when it is woken. */
  readonly look: Effect.Effect<number, E, R>
  /** Comes before each look. */
  readonly rest?: Effect.Effect<void>
  /** Is logged when a look fails. */
  readonly failed: string
  /** Until the next look after one that failed. */
  readonly retryMillis: number
}

/**
 * A loop that sleeps until something is due. To wake it is one synchronous step, in any context, and volatile: whoever
 * does has written to the store what is due.
 */
export class DueLoop {
  readonly #news = Latch.makeUnsafe()
  /** It sleeps until then at most. */
  #looksAt = Number.POSITIVE_INFINITY
  #isAsleep = false

  /** Something falls due then: at once without a time, which is in Unix milliseconds. */
  readonly wake = (atMillis: number = Number.NEGATIVE_INFINITY): void => {
    if (atMillis >= this.#looksAt) return
    this.#looksAt = atMillis
    if (this.#isAsleep || atMillis === Number.NEGATIVE_INFINITY) this.#news.openUnsafe()
  }

  /** Never ends. Wakes from before the first look count. */
  readonly run = <E, R>({
    failed,
    look,
    rest = Effect.void,
    retryMillis
  }: DueWork<E, R>): Effect.Effect<never, never, R> =>
    Effect.gen({ self: this }, function* () {
      yield* rest
      this.#news.closeUnsafe()
      this.#looksAt = Number.POSITIVE_INFINITY
      return yield* look
    }).pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(
          Effect.logWarning(failed, cause),
          Effect.map(Clock.currentTimeMillis, (now) => now + retryMillis)
        )
      ),
      Effect.flatMap(this.#sleepUntil),
      Effect.forever
    )

  readonly #sleepUntil = (atMillis: number): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      this.#looksAt = Math.min(this.#looksAt, atMillis)
      this.#isAsleep = true
      const wait = Duration.millis(Math.max(0, this.#looksAt - now))
      return Effect.timeoutOption(this.#news.await, wait).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            this.#isAsleep = false
          })
        )
      )
    })
}
