import type { ServerResponse } from "node:http"

/** If a caller sends more than this many requests within `windowMillis`, the rest is a burst. */
const startsMax = 32
const windowMillis = 5

/**
 * How many requests of a burst start in one event-loop turn. Starting all that have arrived would make the turn as long
 * as their caller wants. `hostile`, event streams
 */
const burstStarts = 2

/** A caller counts as alone after this many milliseconds without a request from another one. */
const aloneMillis = 1000

/**
 * Spreads a burst of one caller over event-loop turns, so that requests that others send meanwhile start before the
 * rest of the burst. Every request passes through here, so one that is not part of a burst must not even read the
 * clock. docs/reference/keys-and-limits.md#shares
 */
export class CallerTurns {
  /** Requests that start in later turns, oldest first, by caller. The limit of connections bounds their number. */
  readonly #waiting = new Map<string, Array<() => void>>()
  #isScheduled = false
  #latest = ""
  /** When the latest change from one caller to another happened, in milliseconds of `performance.now()`. */
  #sharedAt = 0
  /** How many requests of the latest caller started since `#windowAt`. */
  #started = 0
  #windowAt = 0

  /** Starts the request now or in a later turn, unless its client has disconnected by then. */
  run(caller: string, response: ServerResponse, start: () => void): void {
    if (caller !== this.#latest) this.#follow(caller)
    const waiting = this.#waiting.size === 0 ? undefined : this.#waiting.get(caller)
    if (waiting === undefined && this.#mayStart()) {
      this.#started += 1
      return start()
    }
    const later = () => {
      if (!response.destroyed) start()
    }
    if (waiting === undefined) this.#waiting.set(caller, [later])
    else waiting.push(later)
    this.#schedule()
  }

  #follow(caller: string): void {
    this.#latest = caller
    this.#sharedAt = performance.now()
    this.#windowAt = this.#sharedAt
    this.#started = 0
  }

  #mayStart(): boolean {
    if (this.#started < startsMax) return true
    const now = performance.now()
    if (now <= this.#windowAt + windowMillis && now <= this.#sharedAt + aloneMillis) return false
    this.#windowAt = now
    this.#started = 0
    return true
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#nextTurn)
  }

  readonly #nextTurn = (): void => {
    this.#isScheduled = false
    for (const [caller, waiting] of this.#waiting) {
      const next = waiting.splice(0, burstStarts)
      if (waiting.length === 0) this.#waiting.delete(caller)
      for (const start of next) start()
    }
    if (this.#waiting.size > 0) this.#schedule()
  }
}
