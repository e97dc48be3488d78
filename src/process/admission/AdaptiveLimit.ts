/** The period over which delays are averaged, in milliseconds. */
const windowMillis = 100

/** After this many milliseconds without work, the limit returns to `most`. */
const quietMillis = 1000

/** If some request is refused in every window for this many milliseconds, the overload is more than a burst. */
const overloadMillis = 500

/** The factors by which the limit falls after a window that was too slow, and rises after any other. */
const lowered = 0.7
const raised = 1.2

export interface AdaptiveBounds {
  /** The limit never falls below this. */
  readonly least: number
  /** The limit falls below this only during a lasting overload. */
  readonly usual: number
  /** The initial limit, which admits a burst before delays are known. */
  readonly most: number
  /** The limit falls when the average delay exceeds this many milliseconds. */
  readonly delayMillisMax: number
}

/**
 * Limits how many operations may run at once. The limit falls while operations take too long on average, and rises
 * otherwise. O(1); the caller passes the time. ADR 0207.
 */
export class AdaptiveLimit {
  readonly #bounds: AdaptiveBounds
  #limit: number
  /** The maximum number of operations that ran at once in this window. */
  #peak = 0
  #from = -Infinity
  #count = 0
  #sum = 0
  #delay = 0
  /** When the current series of windows with refusals began. */
  #refusingFrom = Infinity
  #isRefusing = false

  constructor(bounds: AdaptiveBounds) {
    this.#bounds = bounds
    this.#limit = bounds.most
  }

  get limit(): number {
    return this.#limit
  }

  /** The average delay of the latest window, in milliseconds. */
  get delay(): number {
    return this.#delay
  }

  /** Records an admission, after which `underWay` operations are running. */
  admitted(underWay: number): void {
    if (underWay > this.#peak) this.#peak = underWay
  }

  refused(): void {
    this.#isRefusing = true
  }

  /** Records `count` operations of `eachMillis` each; `count` may be 0. `underWay` operations are still running. */
  record(nowMillis: number, count: number, eachMillis: number, underWay: number): void {
    this.#sum += count * eachMillis
    this.#count += count
    const elapsed = nowMillis - this.#from
    const wasQuiet = elapsed > quietMillis
    if (elapsed < windowMillis || (this.#count === 0 && !wasQuiet)) return
    const { delayMillisMax, least, most, usual } = this.#bounds
    this.#delay = this.#count === 0 ? 0 : this.#sum / this.#count
    this.#refusingFrom =
      this.#isRefusing && !wasQuiet ? Math.min(this.#refusingFrom, nowMillis) : Infinity
    if (this.#delay > delayMillisMax) {
      const limit = Math.min(this.#limit, this.#peak) * lowered
      const lowest = nowMillis - this.#refusingFrom >= overloadMillis ? least : usual
      this.#limit = Math.max(lowest, Math.floor(limit))
    } else {
      this.#limit = wasQuiet ? most : Math.min(most, Math.ceil(this.#limit * raised))
    }
    this.#from = nowMillis
    this.#isRefusing = false
    this.#sum = 0
    this.#count = 0
    this.#peak = underWay
  }
}
