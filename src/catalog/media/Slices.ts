import { sliceBytes } from "../../domain/shares/Slices.ts"
import type { Sliced } from "../../domain/shares/Slices.ts"

export { inSlices, sliceBytes } from "../../domain/shares/Slices.ts"
export type { Sliced } from "../../domain/shares/Slices.ts"

/** The frames or other parts that one slice reads. */
export const sliceParts = 2048

/** The most parts of a file. Real files have a few, or some thousands in a large PNG. */
const partsMax = 10_000

export const tooManyParts = `The file has more than ${partsMax} parts`

/** Counts the chunks, segments or tags of a file. Returns `false` once there are too many. */
export const makePartsCount = () => {
  let parts = 0
  return (): boolean => {
    parts += 1
    return parts <= partsMax
  }
}

/** The offset of the first non-zero byte from `at` on; the length if there is none. */
export const endOfZeros = function* (bytes: Uint8Array, at: number): Sliced<number> {
  for (let from = at; from < bytes.length; from += sliceBytes) {
    if (from > at) yield
    const end = Math.min(from + sliceBytes, bytes.length)
    for (let index = from; index < end; index += 1) if (bytes[index] !== 0) return index
  }
  return Math.max(at, bytes.length)
}
