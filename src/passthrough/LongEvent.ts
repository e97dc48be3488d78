/** Texts up to this are kept: names, types, figures. What an answer says may be longer, and is not. */
const textCharactersMax = 256

/** Figures lie in the event, in its `response` or `message`, and have details of details. */
const depthMax = 5

/** What is kept of an event that holds more than upstreams send: no figures are read then. */
const keptCharactersMax = 64 * 1024

/**
 * One event of a stream that is too long to be held, read as it comes. Lists, long texts and deep
 * objects are kept empty: usage figures lie in none of them. ADR 0118.
 */
export class LongEvent {
  #kept = ""
  #depth = 0
  /** Brackets that are open in what is left out. */
  #left = 0
  #text: string | undefined
  #isEscaped = false
  #isLineEmpty = false

  /** What is left of the event: a character is a byte. */
  get text(): string {
    return this.#kept
  }

  /** Takes bytes. Answers where behind its blank line the event ends in them, or 0. */
  push(bytes: Buffer): number {
    const text = bytes.toString("latin1")
    for (let at = 0; at < text.length; at += 1) {
      const character = text.charAt(at)
      if (character === "\n" && this.#isLineEmpty) return at + 1
      if (character !== "\r") this.#isLineEmpty = character === "\n"
      if (this.#text === undefined) this.#read(character)
      else this.#readText(character, this.#text)
    }
    return 0
  }

  #read(character: string): void {
    if (character === '"') this.#text = ""
    else if (character === "{" || character === "[") this.#open(character)
    else if (character === "}" || character === "]") this.#close(character)
    else this.#keep(character)
  }

  #readText(character: string, text: string): void {
    if (character === '"' && !this.#isEscaped) {
      this.#text = undefined
      this.#keep(text.length > textCharactersMax ? '""' : `"${text}"`)
      return
    }
    this.#isEscaped = character === "\\" && !this.#isEscaped
    if (text.length <= textCharactersMax) this.#text = text + character
  }

  #open(bracket: string): void {
    this.#keep(bracket)
    if (this.#left > 0 || bracket === "[" || this.#depth === depthMax) this.#left += 1
    else this.#depth += 1
  }

  #close(bracket: string): void {
    if (this.#left > 0) this.#left -= 1
    else this.#depth -= 1
    this.#keep(bracket)
  }

  #keep(text: string): void {
    if (this.#left === 0 && this.#kept.length < keptCharactersMax) this.#kept += text
  }
}
