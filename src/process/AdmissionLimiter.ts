/** Milliseconds over which delays are averaged. */
const windowMillis = 100

/** Average delay of the process's own work beyond which less is admitted. Milliseconds. */
export const delayMillisMax = 10

/** After so long without work nothing is known: the limit is the highest again. Milliseconds. */
const quietMillis = 1000

/** An overload that has refused something in each window for so long is no burst. Milliseconds. */
const overloadMillis = 500

/** The limit is lowered by this factor in each window that is late, and raised in each that is not. */
const lowered = 0.7
const raised = 1.2

export interface AdmissionBounds {
  /** So much is admitted however late it is. */
  readonly least: number
  /** So much is admitted however late it is, unless an overload lasts. */
  readonly usual: number
  /** A burst: so much is admitted before delays are known. */
  readonly most: number
}

/**
 * Bounds how much work of one kind waits for this process. Work in hand is what was admitted in this turn
 * of the event loop, and operations on the store: a request that waits for a vendor, its client or the end
 * of a task is none. The limit falls while the average delay is too long, and rises while it is not.
 * O(1), time is given by the caller. ADR 0207.
 */
export class AdmissionLimiter {
  readonly #bounds: AdmissionBounds
  #limit: number
  /** Operations under way. */
  #operations = 0
  /** Admitted, and operations begun, since the latest turn of the event loop. */
  #admitted = 0
  #begun = 0
  #refused = 0
  /** Most in hand in this window. */
  #peak = 0
  #from = -Infinity
  #count = 0
  #sum = 0
  #delay = 0
  /** Since when each window has refused something. */
  #refusingFrom = Infinity
  #isRefusing = false

  constructor(bounds: AdmissionBounds) {
    this.#bounds = bounds
    this.#limit = bounds.most
  }

  /** `false`: to be refused at once. */
  admit(): boolean {
    const inHand = this.#inHand
    if (inHand >= this.#limit) {
      this.#refused += 1
      this.#isRefusing = true
      return false
    }
    this.#admitted += 1
    if (inHand >= this.#peak) this.#peak = inHand + 1
    return true
  }

  /** Something is waited for that only this process or its store delays. */
  begin(): void {
    this.#operations += 1
    this.#begun += 1
  }

  end(nowMillis: number, tookMillis: number): void {
    this.#operations -= 1
    this.#sum += tookMillis
    this.#count += 1
    this.#adapt(nowMillis)
  }

  /** The loop has handled all requests that it has read in this turn, which took so long. */
  turn(nowMillis: number, tookMillis: number): void {
    this.#sum += this.#admitted * tookMillis
    this.#count += this.#admitted
    this.#admitted = 0
    this.#begun = 0
    this.#adapt(nowMillis)
  }

  /** What was admitted in this turn has begun an operation in it, or has none yet. */
  get #inHand(): number {
    return this.#operations + Math.max(0, this.#admitted - this.#begun)
  }

  /** Average of the latest window, in milliseconds. */
  get delay(): number {
    return this.#delay
  }

  get limit(): number {
    return this.#limit
  }

  /** How much was refused since the call before. */
  takeRefused(): number {
    const refused = this.#refused
    this.#refused = 0
    return refused
  }

  #adapt(nowMillis: number): void {
    const elapsed = nowMillis - this.#from
    if (elapsed < windowMillis || this.#count === 0) return
    const { least, most, usual } = this.#bounds
    const isAnew = elapsed > quietMillis
    this.#delay = this.#sum / this.#count
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
    this.#peak = this.#inHand
  }
}
