import { readFileSync } from "node:fs"

/**
 * A clock that stands still while the main thread of this process, or of one of these, is ready to run and other
 * programs have the processors: real time, less what Linux counts as waiting. A bound of the product that is asserted
 * by it says the same on a busy machine; elsewhere it is real time. What a process that has ended waited for is the
 * newest value that was read: `look` reads it.
 */
export const ownClock = (...pids: ReadonlyArray<number | undefined>) => {
  const waited = new Map<number, number>()
  const look = (): number => {
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
  return look
}

/** The second figure: nanoseconds on a run queue. */
const waitedMillis = (pid: number): number => {
  try {
    const nanos = Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1])
    return Number.isFinite(nanos) ? nanos / 1e6 : 0
  } catch {
    return 0
  }
}
