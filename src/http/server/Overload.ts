/** What the samples of one process say. */
export interface LoadSample {
  /** How long what is admitted now waits: a turn of the event loop, or what is in hand by the pace. */
  readonly lateMillis: number
  /** Since the sample before. */
  readonly elapsedMillis: number
  /** Requests whose response has not begun. */
  readonly waiting: () => number
}

/** Samples are taken at this interval. */
export const sampleMillis = 100

/** When it does not keep up, and what is aimed at while requests are refused. Milliseconds. */
export interface OverloadBounds {
  readonly late: number
  readonly goal: number
}

/** Of the event loop, and of creates, which wait for the store as well. */
export const loopBounds: OverloadBounds = { late: 250, goal: 50 }
export const createBounds: OverloadBounds = { late: 1000, goal: 250 }

/** A burst is served: it has to be late for so long. */
const patienceMillis = 1000

/** Requests between two samples, at most: the loop is stuck in reading them. */
const burstMax = 2000

/** Fewer requests a second are no reason: something else keeps the processor. */
const perSecondMin = 100

/** Without a refusal for so long all are admitted again. */
const quietMillis = 1000

/**
 * Admits as many requests as the process finishes, while it does not keep up with those that come. The cost
 * of a request is one comparison. ADR 0196.
 */
export class Overload {
  readonly #bounds: OverloadBounds
  #admitted = 0
  #budget = burstMax
  #refused = 0
  #lateFor = 0
  #cameMeanwhile = 0
  #quietFor = 0
  #waiting = 0
  /** Finished requests a millisecond; 0: all are admitted. */
  #pace = 0
  #total = 0

  constructor(bounds: OverloadBounds = loopBounds) {
    this.#bounds = bounds
  }

  /** `false`: the request is to be refused. */
  admit(): boolean {
    if (this.#admitted < this.#budget) {
      this.#admitted += 1
      return true
    }
    this.#refused += 1
    return false
  }

  /** Requests that were refused so far. */
  get refused(): number {
    return this.#total + this.#refused
  }

  sample({ elapsedMillis, lateMillis, waiting }: LoadSample): void {
    const admitted = this.#admitted
    const refused = this.#refused
    this.#total += refused
    this.#admitted = 0
    this.#refused = 0
    if (this.#pace === 0 && lateMillis <= this.#bounds.late) {
      this.#lateFor = 0
      this.#cameMeanwhile = 0
      return
    }
    const before = this.#waiting
    this.#waiting = waiting()
    const finished = Math.max(0, admitted - (this.#waiting - before)) / elapsedMillis
    if (this.#pace === 0) {
      this.#lateFor += elapsedMillis
      this.#cameMeanwhile += admitted
      const perSecond = (this.#cameMeanwhile * 1000) / this.#lateFor
      if (this.#lateFor < patienceMillis || perSecond < perSecondMin) return
      this.#pace = finished
      this.#quietFor = 0
    }
    this.#adapt(lateMillis, finished, refused > 0 ? 0 : elapsedMillis)
  }

  #adapt(lateMillis: number, finished: number, quiet: number): void {
    this.#quietFor = quiet === 0 ? 0 : this.#quietFor + quiet
    if (this.#quietFor >= quietMillis) {
      this.#pace = 0
      this.#lateFor = 0
      this.#cameMeanwhile = 0
      this.#budget = burstMax
      return
    }
    // Fewer than are finished until what waits is worked off, then a little more each time
    const isLate = lateMillis > this.#bounds.goal
    this.#pace = Math.max(paceMin, isLate ? Math.min(this.#pace, finished) * 0.8 : this.#pace * 1.1)
    this.#budget = Math.min(burstMax, Math.ceil(this.#pace * sampleMillis))
  }
}

/** Requests a millisecond that are admitted however late the process is, so that its pace is known. */
const paceMin = 0.02
