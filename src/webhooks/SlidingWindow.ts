/** A clock that goes back by more than this was set. */
const clockStepMillis = 1000

/**
 * Keeps any sliding minute within a limit, as the receiver counts it. A request reaches the receiver
 * somewhere between the start and the end of its attempt, so an attempt takes a place from its start
 * until a full `windowMillis` after its end: then no two arrivals that many apart are closer than the
 * window, whatever the network does (ADR 0051).
 */
export class SlidingWindow {
  readonly #limit: number
  readonly #windowMillis: number
  /** End times, oldest first from `#first` on. */
  #ends: Array<number>
  #first = 0
  #underWay = 0

  constructor(limit: number, windowMillis: number, endsMillis: ReadonlyArray<number>) {
    this.#limit = limit
    this.#windowMillis = windowMillis
    this.#ends = [...endsMillis].sort((a, b) => a - b)
  }

  /** How many may start now. */
  room(nowMillis: number): number {
    this.#settleClock(nowMillis)
    while ((this.#ends[this.#first] ?? Infinity) <= nowMillis - this.#windowMillis) this.#first += 1
    if (this.#first > this.#limit) {
      this.#ends = this.#ends.slice(this.#first)
      this.#first = 0
    }
    return Math.max(0, this.#limit - this.#underWay - (this.#ends.length - this.#first))
  }

  /**
   * A clock that was set back: what has ended has ended by now, so that nobody waits for the old time
   * to come again. Small differences are of fibers that read the clock a little earlier.
   */
  #settleClock(nowMillis: number): void {
    if ((this.#ends.at(-1) ?? nowMillis) <= nowMillis + clockStepMillis) return
    this.#ends = this.#ends.slice(this.#first).map((end) => Math.min(end, nowMillis))
    this.#first = 0
  }

  /** Attempts start. */
  begin(count: number): void {
    this.#underWay += count
  }

  /** One attempt has ended. A clock that was set back does not shorten the window of those before. */
  end(nowMillis: number): void {
    this.#underWay -= 1
    this.#ends.push(Math.max(nowMillis, this.#ends.at(-1) ?? nowMillis))
  }

  /** One attempt that took a place was never begun. */
  giveBack(): void {
    this.#underWay -= 1
  }

  /** Milliseconds until time alone makes room; 0 when there is room, or when only an end makes it. */
  waitMillis(nowMillis: number): number {
    if (this.room(nowMillis) > 0) return 0
    const leaving = this.#ends[this.#ends.length - (this.#limit - this.#underWay)]
    return leaving === undefined ? 0 : leaving + this.#windowMillis - nowMillis
  }
}
