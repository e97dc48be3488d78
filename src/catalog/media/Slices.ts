import { Effect } from "effect"

/** A computation that yields between slices, so that the event loop is free in between. */
export type Sliced<A> = Generator<void, A>

/** Bytes or characters that one slice looks at: two milliseconds on a slow machine. */
export const sliceBytes = 64 * 1024

/** Frames or other parts that one slice reads. */
export const sliceParts = 2048

/** Real files have a few, or some thousands in a large PNG. */
const partsMax = 10_000

export const tooManyParts = `The file has more than ${partsMax} parts`

/** Counts the chunks, segments or tags of a file: `false` when it has too many. */
export const makePartsCount = () => {
  let parts = 0
  return (): boolean => {
    parts += 1
    return parts <= partsMax
  }
}

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

/** The offset of the first byte from `at` that is not zero; the length when there is none. */
export const endOfZeros = function* (bytes: Uint8Array, at: number): Sliced<number> {
  for (let from = at; from < bytes.length; from += sliceBytes) {
    if (from > at) yield
    const end = Math.min(from + sliceBytes, bytes.length)
    for (let index = from; index < end; index += 1) if (bytes[index] !== 0) return index
  }
  return Math.max(at, bytes.length)
}
