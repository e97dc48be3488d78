/** A part of a pattern: a character, a sequence of parts, or a repetition. */
type Part =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Sequence"; readonly parts: ReadonlyArray<Part> }
  | { readonly _tag: "Repeat"; readonly part: Part; readonly min: number; readonly max: number }

const nothing: Part = { _tag: "Text", text: "" }
const textPart = (text: string): Part => ({ _tag: "Text", text })

/** Drops empty groups and unwraps groups with a single part, so that the work is proportional to the generated text. */
const sequenceOf = (parts: ReadonlyArray<Part>): Part =>
  parts.length > 1 ? { _tag: "Sequence", parts } : (parts[0] ?? nothing)

/** The letters tried for a negated class. */
const letters = "aA1_- .@/:,;+*=#".split("")

const isDigit = (letter: string) => letter >= "0" && letter <= "9"
const isWord = (letter: string) => /\w/u.test(letter)
const isBlank = (letter: string) => /\s/u.test(letter)

const isLetter = (letter: string) => /[A-Za-z]/u.test(letter)

/** Unicode classes by the prefix of their names. All other classes count as letters. */
const properties: ReadonlyArray<readonly [name: RegExp, test: (letter: string) => boolean]> = [
  [/^\{N/u, isDigit],
  [/^\{Lu/u, (letter) => /[A-Z]/u.test(letter)],
  [/^\{[PS]/u, (letter) => !isWord(letter) && !isBlank(letter)],
  [/^\{Z/u, isBlank]
]

/** The classes written with a backslash. */
const classes: Readonly<Record<string, (letter: string) => boolean>> = {
  d: isDigit,
  D: (letter) => !isDigit(letter),
  w: isWord,
  W: (letter) => !isWord(letter),
  s: isBlank,
  S: (letter) => !isBlank(letter)
}

const controls: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v" }

/** The longest pattern, and half of the longest text generated from one. */
const lengthMax = 3000

/** Reads a pattern once, from left to right. Look-arounds, anchors and back references match nothing. */
class PatternReader {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  /** The first alternative up to the end, or up to the bracket that closes the group. */
  choice(): Part {
    const parts: Array<Part> = []
    let isFirst = true
    while (this.#at < this.#source.length && this.#peek() !== ")") {
      if (this.#skip("|")) isFirst = false
      else {
        const part = this.#repeated(this.#part())
        if (isFirst && part !== nothing) parts.push(part)
      }
    }
    return sequenceOf(parts)
  }

  #peek(): string {
    return this.#source.charAt(this.#at)
  }

  #next(): string {
    const letter = this.#source.charAt(this.#at)
    this.#at += 1
    return letter
  }

  #skip(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#source)
    if (found !== null) this.#at += found[0].length
    return found
  }

  #part(): Part {
    const letter = this.#next()
    switch (letter) {
      case "^":
      case "$":
        return nothing
      case ".":
        return textPart("a")
      case "[":
        return textPart(this.#class())
      case "(":
        return this.#group()
      case "\\":
        return this.#escape()
      default:
        return textPart(letter)
    }
  }

  #group(): Part {
    const kind = this.#match(/\?(?:[:=!]|<[=!]|<[^>]{1,40}>)/uy)?.[0] ?? ""
    const found = this.choice()
    this.#skip(")")
    return kind.endsWith("=") || kind.endsWith("!") ? nothing : found
  }

  #escape(): Part {
    const letter = this.#next()
    if (/[bB\d]/u.test(letter)) return nothing
    const accepts = this.#classOf(letter)
    return textPart(accepts === undefined ? this.#literal(letter) : (letters.find(accepts) ?? "a"))
  }

  #classOf(letter: string): ((letter: string) => boolean) | undefined {
    if (letter !== "p" && letter !== "P") return classes[letter]
    const name = this.#match(/\{[^}]{0,40}\}/uy)?.[0] ?? ""
    const property = properties.find(([pattern]) => pattern.test(name))?.[1] ?? isLetter
    return letter === "p" ? property : (it) => !property(it)
  }

  /** The character that an escape stands for. */
  #literal(letter: string): string {
    const code = /[xu]/u.test(letter)
      ? this.#match(/\{([0-9a-fA-F]{1,5})\}|([0-9a-fA-F]{4}|[0-9a-fA-F]{2})/uy)
      : null
    return code === null
      ? (controls[letter] ?? letter)
      : String.fromCodePoint(Number.parseInt(code[1] ?? code[2] ?? "61", 16))
  }

  /** A character of the class after an opening bracket. */
  #class(): string {
    const isExcluding = this.#skip("^")
    const tests: Array<(letter: string) => boolean> = []
    const firsts: Array<string> = []
    while (this.#at < this.#source.length && !this.#skip("]")) {
      const letter = this.#next()
      const escaped = letter === "\\" ? this.#next() : undefined
      const accepts = escaped === undefined ? undefined : this.#classOf(escaped)
      if (accepts !== undefined) {
        tests.push(accepts)
        firsts.push(letters.find(accepts) ?? "a")
        continue
      }
      const low = escaped === undefined ? letter : this.#literal(escaped)
      const high = this.#match(/-(?!\])(?:\\(.)|([^\\]))/uy)
      const end = high === null ? low : (high[2] ?? this.#literal(high[1] ?? low))
      tests.push((it) => it >= low && it <= end)
      firsts.push(low)
    }
    return isExcluding
      ? (letters.find((letter) => !tests.some((test) => test(letter))) ?? "a")
      : (firsts[0] ?? "")
  }

  #repeated(part: Part): Part {
    const found = this.#match(/(?:([*+?])|\{(\d{1,9})(,(\d{0,9}))?\})\??/uy)
    if (found === null || part === nothing) return part
    const [, sign, least, more, most] = found
    if (sign !== undefined) {
      return { _tag: "Repeat", part, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity }
    }
    const min = Number(least)
    const max =
      more === undefined ? min : most === undefined || most === "" ? Infinity : Number(most)
    return { _tag: "Repeat", part, min, max }
  }
}

/**
 * A text of at least `lengthMin` characters that matches a regular expression of a schema. The pattern is never
 * executed, because a client's pattern could take forever.
 */
export const patternExample = (pattern: string, lengthMin: number): string => {
  if (pattern.length > lengthMax) throw new RangeError("The pattern is too long")
  const part = new PatternReader(pattern).choice()
  const shortest = render(part, { missing: 0, left: 2 * lengthMax })
  const missing = lengthMin - shortest.length
  if (missing <= 0) return shortest
  const longer = render(part, { missing, left: 2 * lengthMax })
  return /(?:^|[^\\])\$$/u.test(pattern) ? longer : longer.padEnd(lengthMin, "a")
}

interface Budget {
  /** The number of characters that repetitions must still add. */
  missing: number
  left: number
}

const take = (budget: Budget, amount: number): void => {
  budget.left -= amount
  if (budget.left < 0) throw new RangeError("The text of a pattern is too long")
}

const render = (part: Part, budget: Budget): string => {
  switch (part._tag) {
    case "Text":
      take(budget, part.text.length)
      return part.text
    case "Sequence":
      return part.parts.map((it) => render(it, budget)).join("")
    case "Repeat": {
      let text = ""
      for (
        let times = 0;
        times < part.max && (times < part.min || budget.missing > 0);
        times += 1
      ) {
        take(budget, 1)
        const next = render(part.part, budget)
        if (next === "") break
        if (times >= part.min) budget.missing -= next.length
        text += next
      }
      return text
    }
  }
}
