import type { ServerResponse } from "node:http"

/** A caller with this many refusals, and no success since, has its requests started one after the other. */
const refusalsMin = 8

/**
 * The next request of such a caller starts when the previous one has ended, at the latest after this time.
 * Milliseconds.
 */
const nextMillis = 50

/** Most requests of a caller that wait; the next one is refused with 503. */
const waitingMax = 512

/** Callers with refusals that a process remembers. */
const callersMax = 10_000

interface Caller {
  /** Refusals since the last success. */
  refusals: number
  /** Requests to start, oldest first. */
  readonly waiting: Array<() => void>
  /** A started request has neither ended nor taken `nextMillis`. */
  isBusy: boolean
}

/**
 * Starts the requests of callers that are only refused (a wrong key, no credits, invalid bodies) one after the
 * other: refusals earn nothing, and hundreds at once would make the turns of the event loop and the batches of the
 * store long for all other callers. A single success ends it. docs/reference/keys-and-limits.md#refused-callers
 */
export class RefusedCallers {
  readonly #callers = new Map<string, Caller>()

  /** Starts the request now or later. `false`: too many requests of the caller wait. */
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
      // Reads the requests that others have sent in the meantime first
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
    if (this.#callers.size >= callersMax) {
      for (const oldest of this.#callers.keys()) {
        this.#callers.delete(oldest)
        break
      }
    }
    this.#callers.set(name, { refusals: 1, waiting: [], isBusy: false })
  }
}
