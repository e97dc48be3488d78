/** A clock that jumps back by more than this was set back. */
const clockStepMillis = 1000

/**
 * A limit in every sliding window, as the receiver counts it. A request arrives at some time
 * between the start and the end of its attempt, so an attempt counts from its start until
 * `windowMillis` after its end: whatever the network does, no window at the receiver sees more
 * arrivals than the limit. ADR 0104.
 */
export class SlidingWindow {
  readonly #limit: number
  readonly #windowMillis: number
  /** End times, oldest first, from the index `#first` on. */
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
   * After the clock was set back, no end lies in the future: otherwise attempts would
   * wait until the old time returns. Small differences come from fibers that
   * read the clock slightly earlier.
   */
  #adjustToClock(nowMillis: number): void {
    if ((this.#ends.at(-1) ?? nowMillis) <= nowMillis + clockStepMillis) return
    this.#ends = this.#ends.slice(this.#first).map((end) => Math.min(end, nowMillis))
    this.#first = 0
  }

  /** Records that this many attempts start. */
  begin(count: number): void {
    this.#running += count
  }

  /**
   * Records that one attempt has ended. A clock that was set back does not shorten
   * the window of earlier attempts.
   */
  end(nowMillis: number): void {
    this.#running -= 1
    this.#ends.push(Math.max(nowMillis, this.#ends.at(-1) ?? nowMillis))
  }

  /** Records that one started attempt was not sent. */
  cancel(): void {
    this.#running -= 1
  }

  /**
   * Milliseconds until capacity becomes free; 0 if there is some, or
   * if only the end of an attempt can free it.
   */
  waitMillis(nowMillis: number): number {
    if (this.capacity(nowMillis) > 0) return 0
    const leaving = this.#ends[this.#ends.length - (this.#limit - this.#running)]
    return leaving === undefined ? 0 : leaving + this.#windowMillis - nowMillis
  }
}
