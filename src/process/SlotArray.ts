import { Duration, Effect, Fiber } from "effect"
import type { Scope } from "effect"
import { withoutServices } from "../domain/BackgroundContext.ts"

/**
 * An array with a list of its free slots, for short-lived members. A `Set` or `Map` would rehash constantly, and its
 * discarded tables would keep dead members reachable for the scavenger, which took a third of the CPU of a small call.
 * ADR 0233.
 */
export class SlotArray<Member> {
  readonly #members: Array<Member | undefined> = []
  readonly #free: Array<number> = []

  /** Adds a member and returns its slot. */
  add(member: Member): number {
    const slot = this.#free.pop() ?? this.#members.length
    this.#members[slot] = member
    return slot
  }

  /** Removes the member in a slot. Call exactly once per added member. */
  remove(slot: number): void {
    this.#members[slot] = undefined
    this.#free.push(slot)
  }

  all(): ReadonlyArray<Member> {
    return this.#members.filter((member) => member !== undefined)
  }
}

/**
 * Starts a fiber and returns it, or `undefined` if the scope has closed. `ended` is called when the fiber has ended; a
 * finalizer of the effect would cost more.
 */
type Fork = (
  effect: Effect.Effect<unknown, unknown>,
  ended?: () => void
) => Fiber.Fiber<unknown, unknown> | undefined

/**
 * Runs effects in the background. When the scope closes, interrupts them and waits for their end, at most
 * `closeTimeout` in real time. Like `FiberSet.makeRuntime`, but with a `SlotArray` instead of the set.
 */
export const makeFiberSlots = Effect.fnUntraced(function* (options?: {
  readonly closeTimeout: Duration.Duration
}): Effect.fn.Return<Fork, never, Scope.Scope> {
  const fork = Effect.runForkWith(withoutServices(yield* Effect.context<never>()))
  const fibers = new SlotArray<Fiber.Fiber<unknown, unknown>>()
  let isClosed = false
  yield* Effect.addFinalizer(() => {
    isClosed = true
    const interrupted = Fiber.interruptAll(fibers.all())
    return options === undefined
      ? interrupted
      : endWithin(interrupted, Duration.toMillis(options.closeTimeout))
  })
  return (effect, ended) => {
    if (isClosed) return undefined
    const fiber = fork(effect)
    const slot = fibers.add(fiber)
    fiber.addObserver(() => {
      fibers.remove(slot)
      ended?.()
    })
    return fiber
  }
})

/** Waits in real time, even under a test clock, because nothing advances the test clock while a scope closes. */
export const endWithin = (work: Effect.Effect<void>, millis: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    Effect.runFork(work).addObserver(() => {
      clearTimeout(timer)
      resume(Effect.void)
    })
  })
