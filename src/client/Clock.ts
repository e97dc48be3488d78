/** The clock of a client; tests pass their own. */
export interface ClientClock {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Resolves after the given milliseconds, or rejects when the signal aborts. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

/** The longest delay that `setTimeout` supports. */
const millisecondsMax = 2 ** 31 - 1

export const systemClock: ClientClock = {
  now: () => Date.now(),
  sleep: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer)
        reject(signal.reason)
      }
      const timer = setTimeout(
        () => {
          signal.removeEventListener("abort", stop)
          resolve()
        },
        Math.min(milliseconds, millisecondsMax)
      )
      if (signal.aborted) stop()
      else signal.addEventListener("abort", stop, { once: true })
    })
}

export interface Bounds {
  readonly clock: ClientClock
  readonly signal: AbortSignal | undefined
  /** Milliseconds; `undefined` means no limit. */
  readonly timeout: number | undefined
  /** Creates the error with which the work is rejected after the timeout. */
  readonly late: () => unknown
}

/**
 * Runs the work with a signal that aborts when the caller's signal does, after the timeout, or once the work has ended.
 * Rejects as soon as the signal aborts, even if the work ignores it.
 */
export const bounded = async <A>(
  { clock, late, signal, timeout }: Bounds,
  work: (signal: AbortSignal) => Promise<A>
): Promise<A> => {
  signal?.throwIfAborted()
  const ending = new AbortController()
  const stop = () => ending.abort(signal?.reason)
  signal?.addEventListener("abort", stop, { once: true })
  const ended = new Promise<never>((_, reject) => {
    ending.signal.addEventListener("abort", () => reject(ending.signal.reason), { once: true })
  })
  if (timeout !== undefined) {
    clock.sleep(timeout, ending.signal).then(
      () => ending.abort(late()),
      () => {}
    )
  }
  try {
    return await Promise.race([work(ending.signal), ended])
  } finally {
    signal?.removeEventListener("abort", stop)
    ending.abort()
  }
}
