import { seedMax } from "../domain/limits/Limits.ts"

/**
 * 32-bit FNV-1a of the UTF-16 units, then the finalizer of Murmur3, so that ids that differ in their
 * last digits get distant numbers. Equal on every runtime and in every version.
 */
export const hash = (text: string): number => {
  let state = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193)
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35)
  return (state ^ (state >>> 16)) >>> 0
}

/** The seed of a job whose body has none. */
export const seedOfTask = (taskId: string): number => hash(`seed:${taskId}`) % (seedMax + 1)

/** Pseudo-random numbers from 0 to below 1 (mulberry32). */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}
