import { LinkedList } from "../domain/shares/LinkedList.ts"
import type { ListNode } from "../domain/shares/LinkedList.ts"

interface WaitingAttempt {
  readonly url: string
  readonly start: () => void
}

interface Origin {
  /** Running attempts. */
  running: number
  /** Open connections. */
  connections: number
  /** Running attempts to each URL. */
  readonly runningByUrl: Map<string, number>
  /** Attempts that wait for a slot, oldest first. */
  readonly waiting: LinkedList<WaitingAttempt>
  /** When this fires, another connection may be opened. */
  connectTimer: NodeJS.Timeout | undefined
}

/** Attempts that each URL may always run at once, however busy its origin is. */
const reservedPerUrl = 2

/**
 * The minimum time in milliseconds between two new connections to one origin, except for the first two attempts of a
 * URL. A handshake costs as much CPU as ten deliveries, and an open connection may become free in the meantime.
 * ADR 0003.
 */
const connectIntervalMillis = 2

/**
 * Limits the attempts that run at one origin, and thereby its connections. Many endpoints may share an origin, and one
 * that never responds blocks its slots for 30 seconds; therefore a URL with fewer than two running attempts need not
 * wait. Above the limit, attempts wait in the order in which they arrived. This is not `FairShares`, because a URL
 * never waits for its first two attempts and because the goal is to save connections.
 */
export class OriginLimiter {
  readonly #max: number
  readonly #origins = new Map<string, Origin>()

  constructor(max: number) {
    this.#max = max
  }

  /**
   * Starts an attempt now or when a slot becomes free. Returns the function that releases the slot or, before the
   * start, cancels the wait.
   */
  acquire({ href, origin: name }: URL, attempt: () => void): () => void {
    const origin = this.#origin(name)
    let state: "waiting" | "started" | "released" = "waiting"
    let node: ListNode<WaitingAttempt> | undefined
    const start = () => {
      state = "started"
      if (node !== undefined) origin.waiting.remove(node)
      origin.running += 1
      origin.runningByUrl.set(href, runningTo(origin, href) + 1)
      attempt()
    }
    if (runningTo(origin, href) < reservedPerUrl) start()
    else {
      node = origin.waiting.add({ url: href, start })
      this.#startWaiting(origin)
    }
    return () => {
      if (state === "waiting" && node !== undefined) origin.waiting.remove(node)
      // One event loop turn later, because undici does not reuse the connection before that and would open another
      else if (state === "started") setImmediate(() => this.#release(name, origin, href))
      state = "released"
    }
  }

  /**
   * The number of attempts that a URL may run if all busy URLs of its origin share the limit equally. A caller that
   * stays within it hardly waits.
   */
  fairShare({ href, origin: name }: URL): number {
    const busy = this.#origins.get(name)?.runningByUrl
    if (busy === undefined) return this.#max
    const urls = busy.size + (busy.has(href) ? 0 : 1)
    return Math.max(reservedPerUrl, Math.floor(this.#max / urls))
  }

  /** Call this when a connection to the origin has been opened. Returns the function to call when it is closed. */
  connectionOpened(name: string): () => void {
    const origin = this.#origin(name)
    origin.connections += 1
    this.#startWaiting(origin)
    return () => {
      origin.connections -= 1
      this.#deleteIfIdle(name, origin)
    }
  }

  #origin(name: string): Origin {
    const known = this.#origins.get(name)
    if (known !== undefined) return known
    const origin: Origin = {
      running: 0,
      connections: 0,
      runningByUrl: new Map(),
      waiting: new LinkedList(),
      connectTimer: undefined
    }
    this.#origins.set(name, origin)
    return origin
  }

  #release(name: string, origin: Origin, href: string): void {
    origin.running -= 1
    const running = runningTo(origin, href) - 1
    if (running > 0) origin.runningByUrl.set(href, running)
    else origin.runningByUrl.delete(href)
    if (running < reservedPerUrl) origin.waiting.find((one) => one.url === href)?.start()
    this.#startWaiting(origin)
    this.#deleteIfIdle(name, origin)
  }

  /** Starts waiting attempts on free connections, and on one new connection per interval. */
  #startWaiting(origin: Origin): void {
    while (origin.running < this.#max) {
      const next = origin.waiting.first
      if (next === undefined) return
      if (origin.running >= origin.connections) {
        if (origin.connectTimer !== undefined) return
        origin.connectTimer = setTimeout(() => {
          origin.connectTimer = undefined
          this.#startWaiting(origin)
        }, connectIntervalMillis)
      }
      next.value.start()
    }
  }

  #deleteIfIdle(name: string, origin: Origin): void {
    // While an attempt waits, two of its URL run
    if (origin.running === 0 && origin.connections === 0) this.#origins.delete(name)
  }
}

const runningTo = (origin: Origin, url: string): number => origin.runningByUrl.get(url) ?? 0
