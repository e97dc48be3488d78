import type { ClientClock } from "../../src/client/index.ts"

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A clock that jumps to the next sleeper whenever nothing else is running. */
export const jumpingClock = () => {
  let now = Date.parse("2026-01-01T00:00:00Z")
  const sleepers = new Set<Sleeper>()
  const clock: ClientClock = {
    now: () => now,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        const stop = () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        }
        const sleeper: Sleeper = {
          at: now + milliseconds,
          wake: () => {
            sleepers.delete(sleeper)
            signal.removeEventListener("abort", stop)
            resolve()
          }
        }
        if (signal.aborted) return stop()
        signal.addEventListener("abort", stop)
        sleepers.add(sleeper)
      })
  }
  /** The result of the work, however long it sleeps. */
  const settle = async <A>(work: Promise<A>): Promise<A> => {
    const state = { isSettled: false }
    const end = () => {
      state.isSettled = true
    }
    work.then(end, end)
    for (;;) {
      for (let at = 0; at < 4 && !state.isSettled; at += 1) await turn()
      if (state.isSettled) return work
      const [next] = [...sleepers].sort((a, b) => a.at - b.at)
      if (next === undefined) throw new Error("The work has not ended, and nothing is sleeping")
      now = next.at
      next.wake()
    }
  }
  return { clock, settle, sleeping: () => sleepers.size }
}
