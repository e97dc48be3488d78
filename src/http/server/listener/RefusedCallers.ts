import type { ServerResponse } from "node:http"

/** After this many refusals without a success, a caller's requests start one at a time. */
const refusalsMin = 8

/** The next request of such a caller starts when the previous one has ended, or after this many milliseconds. */
const nextMillis = 50

/** The maximum number of waiting requests of a caller. The next one is refused with a 503. */
const waitingMax = 512

/** The maximum number of callers with refusals that a process remembers. */
const callersMax = 10_000

interface Caller {
  /** The number of refusals since the last success. */
  refusals: number
  /** Requests that wait to start, oldest first. */
  readonly waiting: Array<() => void>
  /** Whether a started request has neither ended nor taken `nextMillis`. */
  isBusy: boolean
}

/**
 * Starts the requests of a caller that is only ever refused (wrong key, no credits, invalid bodies) one at a time.
 * Refusals earn nothing, and hundreds at once would delay all other callers by making event-loop turns and store
 * batches long. A single success lifts this. docs/reference/keys-and-limits.md#refused-callers
 */
export class RefusedCallers {
  readonly #callers = new Map<string, Caller>()

  /** Starts the request now or later. `false`: too many requests of this caller are waiting. */
  run(name: string, response: ServerResponse, start: () => void): boolean {
    const caller = this.#callers.get(name)
    if (caller === undefined || caller.refusals < refusalsMin) {
      response.once("close", () => this.#record(name, response))
      start()
      return true
    }
    if (!caller.isBusy) {
      this.#startAlone(name, caller, response, start)
      return true
    }
    if (caller.waiting.length >= waitingMax) return false
    caller.waiting.push(() => {
      if (response.destroyed) this.#startNext(caller)
      else this.#startAlone(name, caller, response, start)
    })
    return true
  }

  #startAlone(name: string, caller: Caller, response: ServerResponse, start: () => void): void {
    caller.isBusy = true
    let isOver = false
    const next = () => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      // First lets the loop read the requests that others have sent in the meantime
      setImmediate(() => this.#startNext(caller))
    }
    const timer = setTimeout(next, nextMillis)
    response.once("close", () => {
      this.#record(name, response)
      next()
    })
    start()
  }

  #startNext(caller: Caller): void {
    caller.isBusy = false
    if (caller.refusals >= refusalsMin) {
      caller.waiting.shift()?.()
      return
    }
    for (const start of caller.waiting.splice(0)) start()
  }

  #record(name: string, { statusCode, writableFinished }: ServerResponse): void {
    const known = this.#callers.get(name)
    if (writableFinished && statusCode < 400) {
      if (known === undefined) return
      known.refusals = 0
      this.#callers.delete(name)
      return
    }
    if (statusCode < 400 || statusCode >= 500) return
    if (known !== undefined) known.refusals += 1
    else this.#add(name)
  }

  #add(name: string): void {
    const [oldest] = this.#callers.keys()
    if (this.#callers.size >= callersMax && oldest !== undefined) this.#callers.delete(oldest)
    this.#callers.set(name, { refusals: 1, waiting: [], isBusy: false })
  }
}
