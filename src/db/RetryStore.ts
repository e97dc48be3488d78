import { Duration, Effect, identity } from "effect"
import type { StoreUnavailable } from "../domain/Problem.ts"

/** From 100 ms, twice as long each time. */
const waitOf = (failures: number): Duration.Duration =>
  Duration.millis(Math.min(5000, 100 * 2 ** failures))

/**
 * For an actor's write that must not be lost: tries again until the store is back. Safe because
 * every such write is conditional, so that a repeat after an unseen commit changes nothing.
 * Where the write itself is not interrupted, `restore` lets the waits be.
 */
export const retryStore = <A, R>(
  self: Effect.Effect<A, StoreUnavailable, R>,
  restore: (wait: Effect.Effect<void>) => Effect.Effect<void> = identity
): Effect.Effect<A, never, R> => {
  const attempt = (failures: number): Effect.Effect<A, never, R> =>
    Effect.catch(self, () =>
      Effect.andThen(restore(Effect.sleep(waitOf(failures))), attempt(failures + 1))
    )
  return attempt(0)
}
