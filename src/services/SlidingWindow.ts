/**
 * Start times of the last minute, to keep any sliding minute within a limit. Exact: a start leaves
 * the window a full `windowMillis` after it came.
 */
export class SlidingWindow {
  readonly #limit: number
  readonly #windowMillis: number
  #starts: Array<number>

  constructor(limit: number, windowMillis: number, startsMillis: ReadonlyArray<number>) {
    this.#limit = limit
    this.#windowMillis = windowMillis
    this.#starts = [...startsMillis]
  }

  /** How many may start now. */
  room(nowMillis: number): number {
    const firstInside = this.#starts.findIndex((start) => start > nowMillis - this.#windowMillis)
    this.#starts = firstInside === -1 ? [] : this.#starts.slice(firstInside)
    return Math.max(0, this.#limit - this.#starts.length)
  }

  /** Notes starts, so that they count. */
  note(nowMillis: number, count: number): void {
    for (let i = 0; i < count; i += 1) this.#starts.push(nowMillis)
  }

  /** Milliseconds until there is room again; 0 when there is some. */
  waitMillis(nowMillis: number): number {
    if (this.room(nowMillis) > 0) return 0
    const leaving = this.#starts[this.#starts.length - this.#limit]
    return leaving === undefined ? 0 : leaving + this.#windowMillis - nowMillis
  }
}
