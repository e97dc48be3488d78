import { Buffer } from "node:buffer"
import { jsonDepthMax, jsonOutlineBytesMax, jsonWeightMax, longTextBytesMin } from "./JsonLimits.ts"

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openList = 0x5b
const closeList = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/** The measured cost of parsing a part, relative to a number in a list. docs/reference/http.md#complex-json */
const weightOf = { comma: 1, list: 4, colon: 9, text: 8, object: 16 } as const

/** The first bytes of a text are checked one by one, because starting a native search costs as much. */
const nearBytes = 32

/**
 * Counts the structure of a JSON text as its bytes arrive, and records where its long texts are. Accepts text that is
 * not JSON; the parser refuses it. A body is refused at the chunk that exceeds a limit.
 */
export class JsonScanner {
  /** The number of keys in all objects. */
  keys = 0
  /** Where the contents of long texts start and end. */
  readonly longTexts: Array<number> = []
  #longBytes = 0
  #weight = 0
  #depth = 0
  #offset = 0
  #textStart: number | undefined
  /** The next byte of a text follows a backslash. */
  #isEscaped = false

  /** Reads a chunk. Returns the fault of the body once it exceeds a limit. */
  add(chunk: Uint8Array): string | undefined {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    let at = 0
    while (at < bytes.length) {
      if (this.#textStart === undefined) at = this.#readStructure(bytes, at)
      else at = this.#readText(bytes, at)
      if (this.#weight > jsonWeightMax) return tooComplex
      if (this.#depth > jsonDepthMax) return tooDeep
    }
    this.#offset += bytes.length
    return this.#outlineBytes() > jsonOutlineBytesMax ? tooManyBytes : undefined
  }

  /** Bytes outside long texts. An unfinished text counts once it is known to be short. */
  #outlineBytes(): number {
    return (this.#textStart ?? this.#offset) - this.#longBytes
  }

  /** Reads up to the start of a text or the end of the chunk. */
  #readStructure(bytes: Buffer, from: number): number {
    const end = bytes.length
    for (let at = from; at < end; at += 1) {
      switch (bytes[at]) {
        case quote:
          this.#weight += weightOf.text
          this.#textStart = this.#offset + at + 1
          return at + 1
        case comma:
          this.#weight += weightOf.comma
          break
        case colon:
          this.keys += 1
          this.#weight += weightOf.colon
          break
        case openList:
          this.#open(weightOf.list)
          break
        case openObject:
          this.#open(weightOf.object)
          break
        case closeList:
        case closeObject:
          this.#depth -= 1
          break
      }
      if (this.#weight > jsonWeightMax || this.#depth > jsonDepthMax) return end
    }
    return end
  }

  #open(weight: number): void {
    this.#depth += 1
    this.#weight += weight
  }

  /** Reads up to the byte after the text, or the end of the chunk. */
  #readText(bytes: Buffer, start: number): number {
    let from = this.#isEscaped ? start + 1 : start
    this.#isEscaped = false
    for (;;) {
      const end = indexOfQuote(bytes, from)
      const isEscaped = endsEscaping(bytes, from, end < 0 ? bytes.length : end)
      if (end < 0) {
        this.#isEscaped = isEscaped
        return bytes.length
      }
      from = end + 1
      if (!isEscaped) break
    }
    this.#endText(this.#offset + from - 1)
    return from
  }

  #endText(end: number): void {
    const start = this.#textStart ?? end
    this.#textStart = undefined
    if (end - start < longTextBytesMin) return
    this.longTexts.push(start, end)
    this.#longBytes += end - start
  }
}

const indexOfQuote = (bytes: Buffer, from: number): number => {
  const near = Math.min(from + nearBytes, bytes.length)
  for (let at = from; at < near; at += 1) if (bytes[at] === quote) return at
  return near === bytes.length ? -1 : bytes.indexOf(quote, near)
}

/** Whether the bytes end with an unescaped backslash. */
const endsEscaping = (bytes: Buffer, from: number, end: number): boolean => {
  let at = end
  while (at > from && bytes[at - 1] === backslash) at -= 1
  return (end - at) % 2 === 1
}

const tooComplex = `The JSON of the body is too complex: it has more than ${jsonWeightMax} points (an object counts ${weightOf.object}, a string ${weightOf.text}, a member ${weightOf.text + weightOf.colon} and its value, a list ${weightOf.list}, a comma ${weightOf.comma})`
const tooDeep = `The JSON of the body is nested too deeply: at most ${jsonDepthMax} levels`
const tooManyBytes = `The JSON of the body is too large: at most ${jsonOutlineBytesMax} bytes outside strings of ${longTextBytesMin} bytes or more`
