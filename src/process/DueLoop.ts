import { Clock, Duration, Effect, Latch } from "effect"
import { warnOnce } from "../domain/WarnOnce.ts"

export interface DueWork<E, R> {
  /** Takes the work that is due. Returns when to scan next, in Unix milliseconds; `Infinity`: only when woken. */
  readonly scan: Effect.Effect<number, E, R>
  /** Runs before each scan, as a pause. */
  readonly rest?: Effect.Effect<void>
  /** The message that is logged when a scan fails, once until one succeeds. */
  readonly failed: string
  /** How long to wait after a failed scan. */
  readonly retryMillis: number
}

/**
 * A loop that sleeps until something is due. `wake` is synchronous and works in any context. Wakes are kept in memory
 * only; callers write the due work to the store first.
 */
export class DueLoop {
  readonly #news = Latch.makeUnsafe()
  /** The time at which it wakes at the latest. */
  #scansAt = Number.POSITIVE_INFINITY
  #isAsleep = false

  /** Announces that work becomes due at this time in Unix milliseconds; without a time, now. */
  readonly wake = (atMillis: number = Number.NEGATIVE_INFINITY): void => {
    if (atMillis >= this.#scansAt) return
    this.#scansAt = atMillis
    if (this.#isAsleep || atMillis === Number.NEGATIVE_INFINITY) this.#news.openUnsafe()
  }

  /** Never ends. Wakes that arrived before the first scan count. */
  readonly run = <E, R>({
    failed,
    rest = Effect.void,
    retryMillis,
    scan
  }: DueWork<E, R>): Effect.Effect<never, never, R> =>
    Effect.gen({ self: this }, function* () {
      yield* rest
      this.#news.closeUnsafe()
      this.#scansAt = Number.POSITIVE_INFINITY
      return yield* scan
    }).pipe(
      warnOnce(failed),
      Effect.flatMap((next) =>
        next === undefined
          ? Effect.map(Clock.currentTimeMillis, (now) => now + retryMillis)
          : Effect.succeed(next)
      ),
      Effect.flatMap(this.#sleepUntil),
      Effect.forever
    )

  readonly #sleepUntil = (atMillis: number): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      this.#scansAt = Math.min(this.#scansAt, atMillis)
      this.#isAsleep = true
      const wait = Duration.millis(Math.max(0, this.#scansAt - now))
      return Effect.timeoutOption(this.#news.await, wait).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            this.#isAsleep = false
          })
        )
      )
    })
}
