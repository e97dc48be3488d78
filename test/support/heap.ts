import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

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
