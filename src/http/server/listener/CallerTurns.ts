import type { ServerResponse } from "node:http"

/** With more requests of a caller in one turn of the event loop, the rest is a burst. */
const startsMax = 32

/**
 * Requests of a burst that start in a turn: all that have arrived would make it as long as their caller wants.
 * `hostile`, event streams
 */
const burstStarts = 2

/** A caller is alone when this many milliseconds have passed without a request of another one. */
const aloneMillis = 1000

/**
 * Spreads a burst of one caller over turns of the event loop, so that the requests that others send in the meantime
 * start before the rest of it. docs/reference/keys-and-limits.md#shares
 */
export class CallerTurns {
  /** Requests started in this turn, by caller. */
  readonly #started = new Map<string, number>()
  /** Requests to start in later turns, oldest first, by caller. Connections bound them. */
  readonly #waiting = new Map<string, Array<() => void>>()
  #isScheduled = false
  #latest = ""
  /** When the latest caller followed another one, in milliseconds of `performance.now()`. */
  #sharedAt = 0

  /** Starts the request in this turn or a later one, unless its client has left by then. */
  run(caller: string, response: ServerResponse, start: () => void): void {
    if (caller !== this.#latest) {
      this.#latest = caller
      this.#sharedAt = performance.now()
    }
    const started = this.#started.get(caller) ?? 0
    const waiting = this.#waiting.get(caller)
    if (waiting === undefined && (started < startsMax || this.#isAlone())) {
      this.#started.set(caller, started + 1)
      this.#schedule()
      return start()
    }
    const later = () => {
      if (!response.destroyed) start()
    }
    if (waiting === undefined) this.#waiting.set(caller, [later])
    else waiting.push(later)
  }

  #isAlone(): boolean {
    return performance.now() > this.#sharedAt + aloneMillis
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#nextTurn)
  }

  readonly #nextTurn = (): void => {
    this.#isScheduled = false
    this.#started.clear()
    if (this.#waiting.size === 0) return
    this.#schedule()
    for (const [caller, waiting] of this.#waiting) {
      const next = waiting.splice(0, this.#isAlone() ? waiting.length : burstStarts)
      if (waiting.length === 0) this.#waiting.delete(caller)
      this.#started.set(caller, next.length)
      for (const start of next) start()
    }
  }
}
