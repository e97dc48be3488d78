import { Effect } from "effect"

/** A computation that yields between slices, so that the event loop is free in between. */
export type Sliced<A> = Generator<void, A>

/** Bytes or characters per slice: two milliseconds on a slow machine. */
export const sliceBytes = 64 * 1024

/** Runs a sliced computation; other fibers and the event loop run between its slices. */
export const inSlices = <A>(make: () => Sliced<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const steps = make()
    const next: Effect.Effect<A> = Effect.suspend(() => {
      const step = steps.next()
      return step.done === true ? Effect.succeed(step.value) : Effect.andThen(Effect.yieldNow, next)
    })
    return next
  })

/** Runs a sliced computation with a small input to completion in one turn. */
export const atOnce = <A>(steps: Sliced<A>): A => {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
