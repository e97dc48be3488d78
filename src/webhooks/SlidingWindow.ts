/** If the clock jumps back by more than this, it was set back. */
const clockStepMillis = 1000

/**
 * A rate limit that holds in every sliding window as the receiver counts it. A request arrives at some time between the
 * start and the end of its attempt, so an attempt counts from its start until `windowMillis` after its end. Whatever
 * the network does, no window at the receiver contains more arrivals than the limit. ADR 0104.
 */
export class SlidingWindow {
  readonly #limit: number
  readonly #windowMillis: number
  /** End times, oldest first, starting at the index `#first`. */
  #ends: Array<number>
  #first = 0
  #running = 0

  constructor(limit: number, windowMillis: number, endsMillis: ReadonlyArray<number>) {
    this.#limit = limit
    this.#windowMillis = windowMillis
    this.#ends = [...endsMillis].sort((a, b) => a - b)
  }

  /** How many attempts may start now. */
  capacity(nowMillis: number): number {
    this.#adjustToClock(nowMillis)
    while ((this.#ends[this.#first] ?? Infinity) <= nowMillis - this.#windowMillis) this.#first += 1
    if (this.#first > this.#limit) {
      this.#ends = this.#ends.slice(this.#first)
      this.#first = 0
    }
    return Math.max(0, this.#limit - this.#running - (this.#ends.length - this.#first))
  }

  /**
   * After the clock was set back, moves all ends out of the future. Otherwise attempts would wait until the clock
   * reaches the old time again. Small differences are normal, because fibers read the clock at slightly different
   * times.
   */
  #adjustToClock(nowMillis: number): void {
    if ((this.#ends.at(-1) ?? nowMillis) <= nowMillis + clockStepMillis) return
    this.#ends = this.#ends.slice(this.#first).map((end) => Math.min(end, nowMillis))
    this.#first = 0
  }

  /** Records the start of this many attempts. */
  begin(count: number): void {
    this.#running += count
  }

  /** Records the end of an attempt. If the clock was set back, the window of earlier attempts is not shortened. */
  end(nowMillis: number): void {
    this.#running -= 1
    this.#ends.push(Math.max(nowMillis, this.#ends.at(-1) ?? nowMillis))
  }

  /** Records that a started attempt was not sent. */
  cancel(): void {
    this.#running -= 1
  }

  /**
   * Milliseconds until capacity becomes free. 0 if there already is some, or if only the end of a running attempt can
   * free it.
   */
  waitMillis(nowMillis: number): number {
    if (this.capacity(nowMillis) > 0) return 0
    const leaving = this.#ends[this.#ends.length - (this.#limit - this.#running)]
    return leaving === undefined ? 0 : leaving + this.#windowMillis - nowMillis
  }
}
