/**
 * Bytes of server-sent events, searched as text: each mark is looked for once over all of them, not
 * once an event. A character is a byte, so that places in one are places in the other.
 */
export class EventText {
  readonly bytes: Buffer
  readonly #text: string
  readonly #blank: Places
  readonly #blankAfterReturn: Places
  readonly #piece: Places
  readonly #usage: Places
  readonly #error: Places

  constructor(bytes: Buffer, pieceMark: string) {
    this.bytes = bytes
    this.#text = bytes.toString("latin1")
    this.#blank = new Places(this.#text, "\n\n")
    this.#blankAfterReturn = new Places(this.#text, "\n\r\n")
    this.#piece = new Places(this.#text, pieceMark)
    this.#usage = new Places(this.#text, usageMark)
    this.#error = new Places(this.#text, '"error"')
  }

  /** Behind the blank line that ends the event that begins here; 0 when it is not there yet. */
  endOfEvent(start: number): number {
    const blank = this.#blank.from(start)
    const other = this.#blankAfterReturn.from(start)
    if (blank === Infinity && other === Infinity) return 0
    return blank < other ? blank + 2 : other + 3
  }

  /** Does the event hold a piece of the answer? */
  hasPiece(start: number, end: number): boolean {
    return this.#piece.from(start) < end
  }

  /** May the event hold usage figures, or an error? Only then it is worth reading. */
  mayReport(start: number, end: number): boolean {
    const usage = this.#usage.from(start)
    if (usage < end && !this.#text.startsWith(nullMark, usage + usageMark.length)) return true
    return this.#error.from(start) < end
  }
}

/** Stands in every event with usage figures. */
export const usageMark = '"usage'

/** `"usage":null` stands in every chunk but the last. */
const nullMark = '":null'

/** Where a mark stands; asked for places that never go back. */
class Places {
  readonly #text: string
  readonly #mark: string
  #next = -1

  constructor(text: string, mark: string) {
    this.#text = text
    this.#mark = mark
  }

  /** The first place not before `start`. */
  from(start: number): number {
    if (this.#next < start) {
      const found = this.#text.indexOf(this.#mark, start)
      this.#next = found < 0 ? Infinity : found
    }
    return this.#next
  }
}
