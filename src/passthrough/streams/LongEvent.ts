import { SkimmedJson } from "./SkimmedJson.ts"

const blankLine = /\n\r?\n/u

/** All of a blank line except its last character. */
const blankLineCharacters = 2

/** Reads a server-sent event that is too long to be buffered, as it arrives. ADR 0130. */
export class LongEvent {
  readonly #json = new SkimmedJson()
  /** The last characters, with which a blank line may begin. */
  #last = ""

  /** The kept part of the event, as Latin-1. */
  get text(): string {
    return this.#json.text
  }

  /** Takes bytes; returns the index after the blank line that ends the event, or 0 if there is none. */
  push(bytes: Buffer): number {
    const text = this.#last + bytes.toString("latin1")
    const blank = blankLine.exec(text)
    const end = blank === null ? text.length : blank.index + blank[0].length
    this.#json.push(text.slice(this.#last.length, end))
    const taken = end - this.#last.length
    this.#last = text.slice(-blankLineCharacters)
    return blank === null ? 0 : taken
  }
}
