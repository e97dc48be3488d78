import type { ServerResponse } from "node:http"

/**
 * Most requests of one caller that start in a turn of the event loop while others are served too. All that have
 * arrived would make the turn as long as their caller wants. `hostile`, event streams
 */
const startsMax = 2

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
  /** Until then the latest caller is not alone, in milliseconds of `performance.now()`. */
  #sharedUntil = 0

  /** Starts the request in this turn or a later one, unless its client has left by then. */
  run(caller: string, response: ServerResponse, start: () => void): void {
    const started = this.#started.get(caller) ?? 0
    const waiting = this.#waiting.get(caller)
    const isAlone = this.#isAlone(caller)
    if (waiting === undefined && (isAlone || started < startsMax)) {
      this.#schedule()
      this.#started.set(caller, started + 1)
      return start()
    }
    const later = () => {
      if (!response.destroyed) start()
    }
    if (waiting === undefined) this.#waiting.set(caller, [later])
    else waiting.push(later)
  }

  #isAlone(caller: string): boolean {
    const now = performance.now()
    if (caller !== this.#latest) {
      this.#latest = caller
      this.#sharedUntil = now + aloneMillis
    }
    return now > this.#sharedUntil
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
      const next = waiting.splice(0, startsMax)
      if (waiting.length === 0) this.#waiting.delete(caller)
      this.#started.set(caller, next.length)
      for (const start of next) start()
    }
  }
}
