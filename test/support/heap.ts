import { Effect } from "effect"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { eventually } from "./gateway.ts"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

export const megabyte = 1024 * 1024

/** Bytes of the JavaScript heap and of buffers that are in use after a garbage collection. */
export const kept = () => {
  collect()
  // V8 sweeps array buffers behind a collection, and ends that before the next one
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return { heap: heapUsed, buffers: arrayBuffers }
}

/** As `keepsLessThan`, of the JavaScript heap alone: the memory of an embedded store is a buffer. */
export const heapGrewLessThan = (bytes: number, before: ReturnType<typeof kept>) =>
  eventually(
    Effect.sync(() => kept().heap - before.heap),
    (grown) => grown < bytes
  )

/**
 * Waits until less than `bytes` more than `before` are kept. What the last requests hold is freed
 * a few turns of the loop after their answers; what leaks is never freed.
 */
export const keepsLessThan = (bytes: number, before: ReturnType<typeof kept>) =>
  eventually(
    Effect.sync(() => {
      const after = kept()
      return after.heap + after.buffers - before.heap - before.buffers
    }),
    (grown) => grown < bytes
  )
