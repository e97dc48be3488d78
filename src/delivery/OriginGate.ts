interface Waiting {
  readonly url: string
  readonly start: () => void
}

interface Origin {
  underWay: number
  /** Attempts under way to each URL. */
  readonly byUrl: Map<string, number>
  /** Oldest first. */
  readonly waiting: Set<Waiting>
}

/** Attempts that every URL may have under way, however busy its origin is. */
const ownMax = 2

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
    const origin = this.#origins.get(name) ?? { underWay: 0, byUrl: new Map(), waiting: new Set() }
    this.#origins.set(name, origin)
    let state: "waiting" | "started" | "left" = "waiting"
    const start = () => {
      state = "started"
      origin.underWay += 1
      origin.byUrl.set(href, ownOf(origin, href) + 1)
      attempt()
    }
    const waiting = { url: href, start }
    if (origin.underWay < this.#max || ownOf(origin, href) < ownMax) start()
    else origin.waiting.add(waiting)
    return () => {
      if (state === "waiting") origin.waiting.delete(waiting)
      // A turn later: until then undici does not use the connection again, and would open another.
      else if (state === "started") setImmediate(() => this.#leave(name, origin, href))
      state = "left"
    }
  }

  #leave(name: string, origin: Origin, href: string): void {
    origin.underWay -= 1
    const own = ownOf(origin, href) - 1
    if (own > 0) origin.byUrl.set(href, own)
    else origin.byUrl.delete(href)
    const next = this.#next(origin, href)
    if (next !== undefined) {
      origin.waiting.delete(next)
      next.start()
    } else if (origin.underWay === 0) this.#origins.delete(name)
  }

  #next(origin: Origin, left: string): Waiting | undefined {
    if (origin.underWay < this.#max) return origin.waiting.values().next().value
    if (ownOf(origin, left) >= ownMax) return undefined
    return [...origin.waiting].find((one) => one.url === left)
  }
}

const ownOf = (origin: Origin, url: string): number => origin.byUrl.get(url) ?? 0
