import { Effect } from "effect"

/** A computation that yields between slices, so that the event loop is free in between. */
export type Sliced<A> = Generator<void, A>

/** Bytes or characters per slice: two milliseconds on a slow machine. */
export const sliceBytes = 64 * 1024

/** Computations that wait for a turn, oldest first. */
const waiting: Array<() => void> = []
let isScheduled = false

const runNext = (): void => {
  const next = waiting.shift()
  isScheduled = waiting.length > 0
  if (isScheduled) setImmediate(runNext)
  next?.()
}

/** One slice in each turn of the event loop, however many requests compute: each delays others by one. `hostile` */
const nextTurn = Effect.callback<void>((resume) => {
  waiting.push(() => resume(Effect.void))
  if (isScheduled) return
  isScheduled = true
  setImmediate(runNext)
})

/** Runs a sliced computation; other fibers and the event loop run between its slices. */
export const inSlices = <A>(make: () => Sliced<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const steps = make()
    const next: Effect.Effect<A> = Effect.suspend(() => {
      const step = steps.next()
      return step.done === true ? Effect.succeed(step.value) : Effect.andThen(nextTurn, next)
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
