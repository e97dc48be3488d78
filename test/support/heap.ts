import { Effect } from "effect"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { eventually } from "./gateway.ts"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

export const megabyte = 1024 * 1024

/** How many bytes of the JavaScript heap and of buffers are in use after a garbage collection. */
export const kept = () => {
  collect()
  // V8 sweeps array buffers after a collection, and finishes that before the next collection
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return { heap: heapUsed, buffers: arrayBuffers }
}

/** Like `keepsLessThan`, but only for the JavaScript heap: the memory of an embedded store is a buffer. */
export const heapGrewLessThan = (bytes: number, before: ReturnType<typeof kept>) =>
  eventually(
    Effect.sync(() => kept().heap - before.heap),
    (grown) => grown < bytes
  )

/**
 * Waits until less than `bytes` more than `before` are in use. Memory of the last requests is freed some turns of the
 * loop after their responses; leaked memory never is.
 */
export const keepsLessThan = (bytes: number, before: ReturnType<typeof kept>) =>
  eventually(
    Effect.sync(() => {
      const after = kept()
      return after.heap + after.buffers - before.heap - before.buffers
    }),
    (grown) => grown < bytes
  )
