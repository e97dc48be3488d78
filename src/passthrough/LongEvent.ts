/** Strings up to this length are kept: names, types, figures. Longer ones are output, and are not. */
const textCharactersMax = 256

/** Figures are in the event, or in its `response` or `message`, and have details with details. */
const depthMax = 5

/** What is kept of an event at most. An event beyond it is larger than upstreams send: its figures are not read. */
const keptCharactersMax = 64 * 1024

/** The beginning of a list that holds figures: Gemini's by modality, Anthropic's by model, OpenAI's calls of tools. */
const figuresMark = /(?:TokensDetails|"iterations|"output)"\s*:\s*\[$/u

/** Longer than any such beginning. */
const figuresMarkCharacters = 64

/**
 * One event of a stream that is too long to be kept, read as it comes. Other lists, long strings and deep
 * objects are kept empty: none of them holds usage figures. ADR 0130.
 */
export class LongEvent {
  #kept = ""
  #depth = 0
  /** Open brackets in what is left out. */
  #left = 0
  #text: string | undefined
  #isEscaped = false
  #isLineEmpty = false

  /** What is kept of the event, as Latin-1. */
  get text(): string {
    return this.#kept
  }

  /** Takes bytes; returns the index behind the blank line that ends the event in them, or 0. */
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
