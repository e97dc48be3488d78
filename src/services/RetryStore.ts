import { Duration, Effect, Schedule } from "effect"
import type { StoreUnavailable } from "../domain/Problem.ts"

const spacing = Schedule.min([
  Schedule.exponential(Duration.millis(100)),
  Schedule.spaced(Duration.seconds(5))
])

/**
 * For an actor's write that must not be lost: tries again until the store is back. Safe because
 * every such write is conditional, so that a repeat after an unseen commit changes nothing.
 */
export const retryStore = <A, R>(
  self: Effect.Effect<A, StoreUnavailable, R>
): Effect.Effect<A, never, R> => self.pipe(Effect.retry(spacing), Effect.orDie)
