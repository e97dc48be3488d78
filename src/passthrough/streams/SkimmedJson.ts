/** Strings up to this length are kept: names, types, figures. Longer ones are output and are dropped. */
const textCharactersMax = 256

/** Figures are in the value, or in its `response`, `message` or `candidates`, with three levels of details. */
const depthMax = 6

/**
 * The most characters kept of a value. Upstreams send no larger ones; the figures of a larger one would not be read.
 */
const keptCharactersMax = 64 * 1024

/**
 * Matches the beginning of a list that contains figures: Gemini's by modality and its searches, Anthropic's by model,
 * OpenAI's tool calls.
 */
const figuresMark =
  /(?:TokensDetails|"iterations|"output|"candidates|"webSearchQueries|"groundingChunks)"\s*:\s*\[$/u

/** Longer than any such beginning. */
const figuresMarkCharacters = 64

const structure = /["[\]{}]/gu

/**
 * Reads JSON that is too long to be buffered, as it arrives. Keeps what may contain usage figures, and empties other
 * lists, long strings and deep objects. ADR 0130.
 */
export class SkimmedJson {
  readonly #onObject: ((kept: string) => void) | undefined
  #isList = false
  #isComplete = false
  #kept = ""
  #depth = 0
  /** The number of open brackets in the omitted part. */
  #left = 0
  #text: string | undefined
  #isEscaped = false

  /**
   * With `onObject`, the JSON is one document: an object, or a list of objects. It is called with what is kept of each
   * of them, which is then dropped.
   */
  constructor(onObject?: (kept: string) => void) {
    this.#onObject = onObject
  }

  /** What is kept so far. */
  get text(): string {
    return this.#kept
  }

  /** Whether the document has ended. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Reads the next part. */
  push(text: string): void {
    let at = 0
    while (at < text.length) {
      at = this.#text === undefined ? this.#read(text, at) : this.#readText(text, at, this.#text)
    }
  }

  /** Reads up to the next string or bracket. Native searches skip the numbers of a list. */
  #read(text: string, from: number): number {
    structure.lastIndex = from
    const at = structure.exec(text)?.index ?? text.length
    if (at > from) this.#keep(text.slice(from, at))
    const character = text.charAt(at)
    if (character === '"') this.#text = ""
    else if (character === "{" || character === "[") this.#open(character)
    else if (character !== "") this.#close(character)
    return at + 1
  }

  /** Reads up to the end of the string or of the part. */
  #readText(text: string, from: number, before: string): number {
    let next = this.#isEscaped ? from + 1 : from
    let end: number
    for (;;) {
      end = text.indexOf('"', next)
      this.#isEscaped = endsEscaping(text, next, end < 0 ? text.length : end)
      if (end < 0 || !this.#isEscaped) break
      next = end + 1
    }
    const stop = end < 0 ? text.length : end
    const room = textCharactersMax + 1 - before.length
    const string = room > 0 ? before + text.slice(from, Math.min(stop, from + room)) : before
    this.#text = end < 0 ? string : undefined
    if (end >= 0) this.#keep(string.length > textCharactersMax ? '""' : `"${string}"`)
    return stop + 1
  }

  #open(bracket: string): void {
    if (this.#onObject !== undefined && this.#isOutside()) {
      this.#kept = ""
      if (bracket === "[" && !this.#isList) {
        this.#isList = true
        return
      }
    }
    this.#keep(bracket)
    if (this.#left > 0 || this.#depth === depthMax || (bracket === "[" && !this.#holdsFigures())) {
      this.#left += 1
    } else this.#depth += 1
  }

  #holdsFigures(): boolean {
    return figuresMark.test(this.#kept.slice(-figuresMarkCharacters))
  }

  #close(bracket: string): void {
    if (this.#isOutside()) {
      this.#isComplete = true
      return
    }
    if (this.#left > 0) this.#left -= 1
    else this.#depth -= 1
    this.#keep(bracket)
    if (this.#onObject === undefined || !this.#isOutside()) return
    this.#isComplete = !this.#isList
    this.#onObject(this.#kept)
  }

  /** Whether only a list at the top is open, or nothing. */
  #isOutside(): boolean {
    return this.#depth === 0 && this.#left === 0
  }

  #keep(text: string): void {
    if (this.#left > 0) return
    this.#kept += text.slice(0, Math.max(0, keptCharactersMax - this.#kept.length))
  }
}

/** Whether the text between the two indexes ends with a backslash that escapes what follows. */
const endsEscaping = (text: string, from: number, end: number): boolean => {
  let at = end
  while (at > from && text.charAt(at - 1) === "\\") at -= 1
  return (end - at) % 2 === 1
}
