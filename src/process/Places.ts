import { Effect, Fiber } from "effect"
import type { Scope } from "effect"
import { withoutServices } from "../domain/BackgroundContext.ts"

/**
 * An array with a list of its free places. A `Set` or `Map` through which short-lived members pass is
 * made anew all the time, and each table that was thrown away keeps what stood in it from the
 * collection of short-lived objects: a third of the CPU of a small call. ADR 0123.
 */
export class Places<Member> {
  readonly #members: Array<Member | undefined> = []
  readonly #free: Array<number> = []

  /** Returns its place. */
  add(member: Member): number {
    const place = this.#free.pop() ?? this.#members.length
    this.#members[place] = member
    return place
  }

  /** Once for each member that was added. */
  remove(place: number): void {
    this.#members[place] = undefined
    this.#free.push(place)
  }

  all(): ReadonlyArray<Member> {
    return this.#members.filter((member) => member !== undefined)
  }
}

/**
 * Returns the fiber; `undefined` when the scope has ended. `ended` is called when it has ended: a finalizer of the
 * effect would cost more.
 */
type Fork = (
  effect: Effect.Effect<unknown, unknown>,
  ended?: () => void
) => Fiber.Fiber<unknown, unknown> | undefined

const makeWith = (
  end: (interrupted: Effect.Effect<void>) => Effect.Effect<void>
): Effect.Effect<Fork, never, Scope.Scope> =>
  Effect.gen(function* () {
    const fork = Effect.runForkWith(withoutServices(yield* Effect.context<never>()))
    const fibers = new Places<Fiber.Fiber<unknown, unknown>>()
    let isClosed = false
    yield* Effect.addFinalizer(() => {
      isClosed = true
      return end(Fiber.interruptAll(fibers.all()))
    })
    return (effect, ended) => {
      if (isClosed) return undefined
      const fiber = fork(effect)
      const place = fibers.add(fiber)
      fiber.addObserver(() => {
        fibers.remove(place)
        ended?.()
      })
      return fiber
    }
  })

/**
 * Runs effects in the background; the end of the scope interrupts them and waits for their ends:
 * `FiberSet.makeRuntime`, with `Places` in place of the set.
 */
export const makeFiberPlaces = makeWith((interrupted) => interrupted)

/** The same; the end of the scope waits so many real milliseconds at most. */
export const makeFiberPlacesEndingWithin = (
  millis: number
): Effect.Effect<Fork, never, Scope.Scope> =>
  makeWith((interrupted) => endWithin(interrupted, millis))

/** In real time, whatever the clock of a test says: nobody moves it while a scope closes. */
export const endWithin = (work: Effect.Effect<void>, millis: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    Effect.runFork(work).addObserver(() => {
      clearTimeout(timer)
      resume(Effect.void)
    })
  })
