import { LinkedList } from "./LinkedList.ts"
import type { ListNode } from "./LinkedList.ts"

interface Waiting {
  readonly url: string
  readonly start: () => void
}

interface Origin {
  underWay: number
  /** Connections that are open. */
  open: number
  /** Attempts under way to each URL. */
  readonly byUrl: Map<string, number>
  /** Oldest first. */
  readonly waiting: LinkedList<Waiting>
  /** One more connection may be begun when it fires. */
  pace: NodeJS.Timeout | undefined
}

/** Attempts that every URL may have under way, however busy its origin is. */
const ownMax = 2

/**
 * Connections to one origin are begun this far apart, save the first two of a URL: a handshake costs as
 * much CPU as ten deliveries, and what waits for its turn may find a connection free before. ADR 0114.
 */
const connectEveryMillis = 2

/**
 * Bounds the attempts under way to one origin, and with them its connections. Many endpoints may lie
 * at one origin: one that never answers holds its places for 30 seconds, so a URL with less than two
 * attempts under way need not wait for a place, and is unharmed by the others. Above the bound the
 * attempts wait in their order.
 */
export class OriginGate {
  readonly #max: number
  readonly #origins = new Map<string, Origin>()

  constructor(max: number) {
    this.#max = max
  }

  /** Starts an attempt, now or when it has a place. Answers how to leave, also while it waits. */
  enter({ href, origin: name }: URL, attempt: () => void): () => void {
    const origin = this.#origin(name)
    let state: "waiting" | "started" | "left" = "waiting"
    let node: ListNode<Waiting> | undefined
    const start = () => {
      state = "started"
      if (node !== undefined) origin.waiting.remove(node)
      origin.underWay += 1
      origin.byUrl.set(href, ownOf(origin, href) + 1)
      attempt()
    }
    if (ownOf(origin, href) < ownMax) start()
    else {
      node = origin.waiting.add({ url: href, start })
      this.#admit(origin)
    }
    return () => {
      if (state === "waiting" && node !== undefined) origin.waiting.remove(node)
      // A turn later: until then undici does not use the connection again, and would open another.
      else if (state === "started") setImmediate(() => this.#leave(name, origin, href))
      state = "left"
    }
  }

  /**
   * Attempts that a URL may have under way, when those that are busy at its origin share the places: who
   * begins no more than these hardly waits.
   */
  shareOf({ href, origin: name }: URL): number {
    const busy = this.#origins.get(name)?.byUrl
    if (busy === undefined) return this.#max
    const urls = busy.size + (busy.has(href) ? 0 : 1)
    return Math.max(ownMax, Math.floor(this.#max / urls))
  }

  /** A connection to this origin has come about. Answers what to call when it is closed. */
  opened(name: string): () => void {
    const origin = this.#origin(name)
    origin.open += 1
    this.#admit(origin)
    return () => {
      origin.open -= 1
      this.#forget(name, origin)
    }
  }

  #origin(name: string): Origin {
    const known = this.#origins.get(name)
    if (known !== undefined) return known
    const origin: Origin = {
      underWay: 0,
      open: 0,
      byUrl: new Map(),
      waiting: new LinkedList(),
      pace: undefined
    }
    this.#origins.set(name, origin)
    return origin
  }

  #leave(name: string, origin: Origin, href: string): void {
    origin.underWay -= 1
    const own = ownOf(origin, href) - 1
    if (own > 0) origin.byUrl.set(href, own)
    else origin.byUrl.delete(href)
    if (own < ownMax) origin.waiting.find((one) => one.url === href)?.start()
    this.#admit(origin)
    this.#forget(name, origin)
  }

  /** Starts what may: on a connection that is free, or on a new one when it is time for one. */
  #admit(origin: Origin): void {
    while (origin.underWay < this.#max) {
      const next = origin.waiting.first
      if (next === undefined) return
      if (origin.underWay >= origin.open) {
        if (origin.pace !== undefined) return
        origin.pace = setTimeout(() => {
          origin.pace = undefined
          this.#admit(origin)
        }, connectEveryMillis)
      }
      next.value.start()
    }
  }

  #forget(name: string, origin: Origin): void {
    if (origin.underWay === 0 && origin.open === 0 && origin.waiting.first === undefined) {
      this.#origins.delete(name)
    }
  }
}

const ownOf = (origin: Origin, url: string): number => origin.byUrl.get(url) ?? 0
