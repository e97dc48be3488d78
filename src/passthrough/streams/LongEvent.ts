/** Strings up to this length are kept: names, types, figures. Longer ones are output and are dropped. */
const textCharactersMax = 256

/** Figures are in the event, or in its `response` or `message`, with two levels of details. */
const depthMax = 5

/**
 * The most characters kept of an event. Upstreams send no larger events; the figures of a larger one would not be read.
 */
const keptCharactersMax = 64 * 1024

/**
 * Matches the beginning of a list that contains figures: Gemini's by modality, Anthropic's by model, OpenAI's tool
 * calls.
 */
const figuresMark = /(?:TokensDetails|"iterations|"output)"\s*:\s*\[$/u

/** Longer than any such beginning. */
const figuresMarkCharacters = 64

/**
 * Reads an event that is too long to be buffered, as it arrives. Empties other lists, long strings and deep objects,
 * because they contain no usage figures. ADR 0130.
 */
export class LongEvent {
  #kept = ""
  #depth = 0
  /** The number of open brackets in the omitted part. */
  #left = 0
  #text: string | undefined
  #isEscaped = false
  #isLineEmpty = false

  /** The kept part of the event, as Latin-1. */
  get text(): string {
    return this.#kept
  }

  /** Takes bytes; returns the index after the blank line that ends the event, or 0 if there is none. */
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
    if (this.#left > 0 || this.#depth === depthMax || (bracket === "[" && !this.#holdsFigures())) {
      this.#left += 1
    } else this.#depth += 1
  }

  #holdsFigures(): boolean {
    return figuresMark.test(this.#kept.slice(-figuresMarkCharacters))
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
