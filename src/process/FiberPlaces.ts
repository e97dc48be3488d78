import { Effect, Fiber } from "effect"
import type { Scope } from "effect"

/**
 * Runs effects in the background; the end of the scope interrupts them and waits for their ends. As
 * `FiberSet.makeRuntime` does, in places that are used again: a set through which fibers pass all the
 * time keeps those that have ended from the collection of short-lived objects (ADR 0123).
 */
export const makeFiberPlaces: Effect.Effect<
  (effect: Effect.Effect<unknown>) => void,
  never,
  Scope.Scope
> = Effect.gen(function* () {
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const places: Array<Fiber.Fiber<unknown> | undefined> = []
  const free: Array<number> = []
  let isClosed = false
  yield* Effect.addFinalizer(() => {
    isClosed = true
    return Fiber.interruptAll(places.filter((fiber) => fiber !== undefined))
  })
  return (effect) => {
    if (isClosed) return
    const fiber = fork(effect)
    const place = free.pop() ?? places.length
    places[place] = fiber
    fiber.addObserver(() => {
      places[place] = undefined
      free.push(place)
    })
  }
})
