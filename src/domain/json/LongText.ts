import { Buffer } from "node:buffer"
import { sliceBytes } from "../shares/Slices.ts"
import type { Sliced } from "../shares/Slices.ts"

const backslash = 0x5c

/** The size of a piece of a long text, which takes about a millisecond to parse. */
const pieceBytes = 16 * sliceBytes

/** The longest encoding of a character: `\ud83d\ude00`. */
const characterBytesMax = 12

/** This many bytes show whether a text is Base64, because words are shorter. */
const encodedBytes = 96

/** A UTF-8 character has at most this many bytes after its first one. */
const continuationBytesMax = 3

/** The end of the UTF-8 character before `at`. Steps back by one character at most: the bytes may not be UTF-8. */
const startOfCharacter = (bytes: Uint8Array, at: number): number => {
  let start = at
  const least = at - continuationBytesMax
  while (start > least && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1
  return start
}

/** A position in the range at which no escape is split. */
const betweenEscapes = (bytes: Buffer, from: number, to: number): number => {
  const near = to - characterBytesMax
  let start = bytes.lastIndexOf(backslash, near)
  if (start < Math.max(from, near - characterBytesMax)) return startOfCharacter(bytes, near)
  while (start > from && bytes[start - 1] === backslash) start -= 1
  return start
}

const escapeBytes = (bytes: Buffer, at: number): number => {
  if (bytes[at] !== backslash) return 1
  if (bytes[at + 1] !== 0x75) return 2
  const isHighSurrogate = /^[dD][89abAB]/u.test(bytes.toString("latin1", at + 2, at + 4))
  const isPair = isHighSurrogate && bytes[at + 6] === backslash && bytes[at + 7] === 0x75
  return isPair ? 12 : 6
}

/** The end of a piece: at most `to`, and not inside a character. */
const endOfPiece = (bytes: Buffer, from: number, to: number): number => {
  if (to >= bytes.length) return bytes.length
  let end = betweenEscapes(bytes, from, to)
  for (;;) {
    const next = end + escapeBytes(bytes, end)
    if (next > to) return startOfCharacter(bytes, end)
    end = next
  }
}

/** The contents of a JSON string in pieces that are valid string contents themselves. */
function* piecesOf(raw: Buffer): Generator<Buffer> {
  for (let at = 0; at < raw.length;) {
    const end = endOfPiece(raw, at, at + pieceBytes)
    yield raw.subarray(at, end)
    at = end
  }
}

/** The characters of a piece. Throws if it is not valid content of a JSON string. */
const parsePiece = (piece: Buffer): string => {
  const text: unknown = JSON.parse(`"${strictUtf8.decode(piece)}"`)
  return String(text)
}

const isParsed = (piece: Buffer): boolean => {
  try {
    parsePiece(piece)
    return true
  } catch {
    return false
  }
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * A long string of a body as it arrived: the bytes between the quotes of a JSON string, with escapes. It is not a JSON
 * value, so decoders that expect a string refuse it. It is read in slices.
 */
export class LongText {
  readonly #raw: Buffer
  readonly #mayEscape: boolean

  constructor(raw: Uint8Array, mayEscape = true) {
    this.#raw = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
    this.#mayEscape = mayEscape
  }

  /** The number of bytes as it arrived, including escapes. */
  get rawBytes(): number {
    return this.#raw.length
  }

  /** Whether it begins like Base64 or a data URL, as inline media do. */
  get looksEncoded(): boolean {
    return /^(?:data:|[\w+/-]+=*$)/u.test(this.#raw.toString("latin1", 0, encodedBytes))
  }

  /** Whether it is the content of a JSON string in UTF-8. */
  *isValid(): Sliced<boolean> {
    for (const piece of piecesOf(this.#raw)) {
      if (!isParsed(piece)) return false
      if (piece.length < this.#raw.length) yield
    }
    return true
  }

  /** Its characters as UTF-8. */
  *bytes(): Sliced<Uint8Array> {
    if (!this.#mayEscape || !this.#raw.includes(backslash)) return this.#raw
    // Escapes are never shorter than their characters
    const bytes = Buffer.allocUnsafeSlow(this.#raw.length)
    let length = 0
    for (const piece of piecesOf(this.#raw)) {
      length += bytes.write(parsePiece(piece), length)
      yield
    }
    return bytes.subarray(0, length)
  }

  /** Its characters, if they are few enough for one turn. */
  text(): string {
    return parsePiece(this.#raw)
  }

  toString(): string {
    return `a string of ${this.#raw.length} bytes`
  }

  toJSON(): string {
    return this.toString()
  }
}
