import { Effect } from "effect"

/** A computation that yields between slices, so that the event loop is free in between. */
export type Sliced<A> = Generator<void, A>

/** Bytes or characters per slice, about two milliseconds on a slow machine. */
export const sliceBytes = 64 * 1024

/**
 * After heavy work, other work gets the event loop for this multiple of the time that the heavy work took. Benchmark:
 * `hostile`
 */
const restFactor = 2

/**
 * What a byte costs besides the time of its turn: the kernel copies it, and its buffer is memory outside the heap, which
 * starts a collection of the whole heap every few tens of megabytes. Benchmark: `hostile`
 */
const hiddenMillisOfByte = 4 / (1024 * 1024)

interface Piece {
  readonly run: () => void
  readonly bytes: number
}

const waiting: Array<Piece> = []
let isScheduled = false
/** Milliseconds of heavy work since the event loop was last left to other work. */
let debtMillis = 0

const runNext = (): void => {
  const piece = waiting.shift()
  const began = performance.now()
  piece?.run()
  debtMillis += performance.now() - began + (piece?.bytes ?? 0) * hiddenMillisOfByte
  isScheduled = waiting.length > 0
  if (isScheduled) schedule()
}

const schedule = (): void => {
  if (debtMillis < 1) {
    setImmediate(runNext)
    return
  }
  setTimeout(runNext, restFactor * debtMillis)
  debtMillis = 0
}

/**
 * Runs one piece of heavy work in a turn of the event loop, oldest first, then leaves the loop to other work for twice
 * as long as the piece took. All heavy work together takes at most a third of the time. `bytes` are those that the
 * piece reads or writes.
 */
export const inHeavyTurn = (run: () => void, bytes = 0): void => {
  waiting.push({ run, bytes })
  if (isScheduled) return
  isScheduled = true
  schedule()
}

/** Continues the fiber as a piece of heavy work. */
export const nextTurn = Effect.callback<void>((resume) => inHeavyTurn(() => resume(Effect.void)))

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
