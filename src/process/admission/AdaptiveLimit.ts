/** Milliseconds over which delays are averaged. */
const windowMillis = 100

/** After this long without work the limit returns to `most`. Milliseconds. */
const quietMillis = 1000

/** An overload that refuses something in every window for this long is more than a burst. Milliseconds. */
const overloadMillis = 500

/** Factors by which the limit falls after each late window and rises after each other one. */
const lowered = 0.7
const raised = 1.2

export interface AdaptiveBounds {
  /** Admitted whatever the delay. */
  readonly least: number
  /** Admitted whatever the delay, unless an overload lasts. */
  readonly usual: number
  /** Admitted in a burst, before delays are known. */
  readonly most: number
  /** The limit falls when the average delay exceeds this. Milliseconds. */
  readonly delayMillisMax: number
}

/**
 * How many operations may run at once: falls while they take too long on average, and rises otherwise. O(1); the
 * caller passes the time. ADR 0207.
 */
export class AdaptiveLimit {
  readonly #bounds: AdaptiveBounds
  #limit: number
  /** Most operations that ran at once in this window. */
  #peak = 0
  #from = -Infinity
  #count = 0
  #sum = 0
  #delay = 0
  /** Start of the current series of windows that each refused something. */
  #refusingFrom = Infinity
  #isRefusing = false

  constructor(bounds: AdaptiveBounds) {
    this.#bounds = bounds
    this.#limit = bounds.most
  }

  get limit(): number {
    return this.#limit
  }

  /** Average of the latest window, in milliseconds. */
  get delay(): number {
    return this.#delay
  }

  /** Records an admission, after which `underWay` are running. */
  admitted(underWay: number): void {
    if (underWay > this.#peak) this.#peak = underWay
  }

  refused(): void {
    this.#isRefusing = true
  }

  /** Records `count` operations of `eachMillis`; `count` may be 0. `underWay` are still running. */
  record(nowMillis: number, count: number, eachMillis: number, underWay: number): void {
    this.#sum += count * eachMillis
    this.#count += count
    const elapsed = nowMillis - this.#from
    const isAnew = elapsed > quietMillis
    if (elapsed < windowMillis || (this.#count === 0 && !isAnew)) return
    const { delayMillisMax, least, most, usual } = this.#bounds
    this.#delay = this.#count === 0 ? 0 : this.#sum / this.#count
    this.#refusingFrom =
      this.#isRefusing && !isAnew ? Math.min(this.#refusingFrom, nowMillis) : Infinity
    if (this.#delay > delayMillisMax) {
      const limit = Math.min(this.#limit, this.#peak) * lowered
      const lowest = nowMillis - this.#refusingFrom >= overloadMillis ? least : usual
      this.#limit = Math.max(lowest, Math.floor(limit))
    } else {
      this.#limit = isAnew ? most : Math.min(most, Math.ceil(this.#limit * raised))
    }
    this.#from = nowMillis
    this.#isRefusing = false
    this.#sum = 0
    this.#count = 0
    this.#peak = underWay
  }
}
