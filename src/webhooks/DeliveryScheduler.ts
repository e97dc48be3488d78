import { DateTime, Duration, Effect, Option } from "effect"
import { Singleton } from "effect/cluster"
import { Sweeps } from "../tasks/Rescuer.ts"

/**
 * Sleeps to the next due delivery and wakes its endpoint's actor. Retries are due 15 s ahead at the
 * least, and new deliveries are woken by their own transaction, so a look every 5 s misses none.
 */
const looksAtLeastEvery = Duration.seconds(5)

/** Rows that fall due within this time are served by one look. */
const looksAtMostEvery = Duration.millis(10)

export const layer = Singleton.make(
  "AlarmClock",
  Effect.gen(function* () {
    const sweeps = yield* Sweeps
    const look = sweeps.dueDeliveries.pipe(
      Effect.catchCause((cause) =>
        Effect.as(Effect.logWarning("The alarm clock failed", cause), Option.none<DateTime.Utc>())
      )
    )
    return yield* Effect.forever(
      Effect.gen(function* () {
        const next = yield* look
        const now = yield* DateTime.now
        const wait = Option.match(next, {
          onNone: () => looksAtLeastEvery,
          onSome: (due) => Duration.min(looksAtLeastEvery, DateTime.distance(now, due))
        })
        yield* Effect.sleep(Duration.max(looksAtMostEvery, wait))
      })
    )
  })
)
