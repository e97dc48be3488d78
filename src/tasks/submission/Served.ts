import { Effect } from "effect"
import type { Fiber, Scope } from "effect"

/** Something that one fiber serves while somebody waits for it. */
export interface Served {
  /** `serve` resets it in the same step in which it sees that nobody waits. */
  isServed: boolean
}

/** Runs `serve` in the scope unless it runs already. When it dies, the next caller starts it again. */
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
