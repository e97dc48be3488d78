/** Milliseconds over which delays are averaged. */
const windowMillis = 100

/** After so long without work nothing is known: the limit is the highest again. Milliseconds. */
const quietMillis = 1000

/** An overload that has refused something in each window for so long is no burst. Milliseconds. */
const overloadMillis = 500

/** The limit is lowered by this factor in each window that is late, and raised in each that is not. */
const lowered = 0.7
const raised = 1.2

export interface AdaptiveBounds {
  /** So much is admitted however late it is. */
  readonly least: number
  /** So much is admitted however late it is, unless an overload lasts. */
  readonly usual: number
  /** A burst: so much is admitted before delays are known. */
  readonly most: number
  /** Average delay beyond which less is admitted. Milliseconds. */
  readonly delayMillisMax: number
}

/**
 * How much may be under way at once: falls while what is measured takes too long on average, and rises while
 * it does not. O(1), time is given by the caller. ADR 0207.
 */
export class AdaptiveLimit {
  readonly #bounds: AdaptiveBounds
  #limit: number
  /** Most under way in this window. */
  #peak = 0
  #from = -Infinity
  #count = 0
  #sum = 0
  #delay = 0
  /** Since when each window has refused something. */
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

  /** One more was admitted, so that `underWay` are. */
  admitted(underWay: number): void {
    if (underWay > this.#peak) this.#peak = underWay
  }

  refused(): void {
    this.#isRefusing = true
  }

  /** So many took so long each, none it may be; `underWay` still are. */
  took(nowMillis: number, count: number, eachMillis: number, underWay: number): void {
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
