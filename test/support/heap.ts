import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

export const megabyte = 1024 * 1024

/** Bytes of JavaScript's heap, and of buffers, that are still in use after a collection. */
export const kept = () => {
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return { heap: heapUsed, buffers: arrayBuffers }
}
