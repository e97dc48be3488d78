import { Duration, Effect } from "effect"
import { retryStore } from "../db/RetryStore.ts"
import { DeliveryStore } from "./DeliveryStore.ts"
import type { Recorded } from "./DeliveryStore.ts"

/** Records written by one statement, and statements under way at once. ADR 0050. */
const recordsPerRunMax = 200
export const recordRunsMax = 1

/** How long an actor that moves away waits for its records; a sweep frees what is missing later. */
const writtenBound = Duration.seconds(3)

/**
 * Writes down what attempts came to, in their order, at once: what gathers while some are written goes
 * together. ADR 0117.
 */
export const makeAttemptRecords = Effect.gen(function* () {
  const store = yield* DeliveryStore
  // In no scope: an actor that ends after its services still writes down what it sent.
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  let waiting: Array<Recorded> = []
  let isWriting = false
  const count = { told: 0, written: 0 }
  let listeners: Array<{ readonly upTo: number; readonly resume: () => void }> = []

  const wrote = (some: ReadonlyArray<Recorded>) => {
    count.written += some.length
    const ready = listeners.filter(({ upTo }) => upTo <= count.written)
    if (ready.length === 0) return
    listeners = listeners.filter(({ upTo }) => upTo > count.written)
    for (const { resume } of ready) resume()
  }

  const writeSome = Effect.suspend(() => {
    const some = waiting.slice(0, recordsPerRunMax)
    waiting = waiting.slice(recordsPerRunMax)
    return retryStore(Effect.suspend(() => store.record(some))).pipe(
      Effect.catchCause((cause) =>
        Effect.logError(`${some.length} webhook attempts could not be recorded`, cause)
      ),
      Effect.andThen(Effect.sync(() => wrote(some)))
    )
  })

  /** Looks and leaves in one step, so that nothing is told between the last look and the end. */
  const write: Effect.Effect<void> = Effect.suspend(() => {
    if (waiting.length > 0) {
      return Effect.andThen(writeSome, () => write)
    }
    isWriting = false
    return Effect.void
  })

  return {
    tell: (one: Recorded): void => {
      waiting.push(one)
      count.told += 1
      if (isWriting) return
      isWriting = true
      // What ends in the same turn goes together.
      fork(Effect.andThen(Effect.yieldNow, write))
    },
    /** Until all is written that was told before, or until a bound. */
    written: Effect.callback<void>((resume) => {
      if (count.written === count.told) return resume(Effect.void)
      listeners.push({ upTo: count.told, resume: () => resume(Effect.void) })
    }).pipe(Effect.timeoutOption(writtenBound), Effect.asVoid)
  }
})
