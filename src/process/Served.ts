import { Effect } from "effect"
import type { Fiber, Scope } from "effect"

/** Something that one fiber at a time looks after, while there is somebody who waits. */
export interface Served {
  /** `serve` sets it back itself, in the same breath as it sees that nobody waits. */
  isServed: boolean
}

/** Runs `serve` in the scope unless it runs already. Should it break, who comes next starts it again. */
export const startServing = <A extends Served>(
  served: A,
  serve: (served: A) => Effect.Effect<void>,
  scope: Scope.Scope
): Effect.Effect<Fiber.Fiber<void> | void> =>
  Effect.suspend(() => {
    if (served.isServed) return Effect.void
    served.isServed = true
    const broken = Effect.sync(() => {
      served.isServed = false
    })
    return Effect.forkIn(
      Effect.onError(serve(served), () => broken),
      scope
    )
  })
