import { readFileSync } from "node:fs"

/**
 * A clock that stops while the main thread of this process, or of one of the given ones, is ready to run but other
 * programs occupy the processors: real time minus the time that Linux counts as waiting. A time limit of the product
 * that is asserted with it also holds on a busy machine. On other systems it is real time. For a process that has
 * ended, its last reading counts.
 */
export const ownClock = (...pids: ReadonlyArray<number | undefined>) => {
  const waited = new Map<number, number>()
  const read = (): number => {
    const millis = performance.now()
    let total = 0
    for (const pid of new Set([process.pid, ...pids])) {
      if (pid === undefined) continue
      const one = Math.max(waited.get(pid) ?? 0, waitedMillis(pid))
      waited.set(pid, one)
      total += one
    }
    return millis - total
  }
  return read
}

/** The second figure: nanoseconds spent waiting on a run queue. */
const waitedMillis = (pid: number): number => {
  try {
    const nanos = Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1])
    return Number.isFinite(nanos) ? nanos / 1e6 : 0
  } catch {
    return 0
  }
}
