/** Postgres' names of the types of elements, and of their arrays. */
export const arrayTypes = {
  bool: { element: 16, array: 1000 },
  int8: { element: 20, array: 1016 },
  int4: { element: 23, array: 1007 },
  text: { element: 25, array: 1009 },
  uuid: { element: 2950, array: 2951 }
} as const
export type ElementType = keyof typeof arrayTypes

/** Dimensions, nulls, type, count, first index. */
const headBytes = 20
/** What most elements need, with their length. */
const bytesEach = 40
/** Up to so many characters a loop is faster than a call of the encoder. */
const loopCharacters = 40
/** The value of each character that is a hexadecimal digit; of the others it is negative. */
const digits = new Int8Array(128).fill(-1)
for (const [value, digit] of Array.from("0123456789abcdef").entries()) {
  digits[digit.charCodeAt(0)] = value
  digits[digit.toUpperCase().charCodeAt(0)] = value
}
/** Where a UUID's text has the sixteen pairs of them. */
const pairs = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]

/**
 * An array of Postgres in the format of its wire, which is written element by element: the driver's
 * own way asks for each what it is and how long. ADR 0119.
 */
export class ArrayBytes {
  readonly array: number
  readonly #element: number
  #bytes: Buffer
  #used = headBytes
  #count = 0
  #hasNull = 0
  /** What was last written as text, and where: most columns of a batch repeat it. */
  #last: string | undefined
  #lastAt = 0

  constructor(type: ElementType, count: number) {
    this.#bytes = Buffer.allocUnsafe(headBytes + count * bytesEach)
    this.array = arrayTypes[type].array
    this.#element = arrayTypes[type].element
  }

  /** All of it. */
  bytes(): Uint8Array {
    const bytes = this.#bytes
    bytes.writeInt32BE(this.#count === 0 ? 0 : 1, 0)
    bytes.writeInt32BE(this.#hasNull, 4)
    bytes.writeInt32BE(this.#element, 8)
    bytes.writeInt32BE(this.#count, 12)
    bytes.writeInt32BE(1, 16)
    return bytes.subarray(0, this.#count === 0 ? 12 : this.#used)
  }

  null(): void {
    this.#hasNull = 1
    this.#begin(-1, 0)
  }

  bool(value: boolean): void {
    const at = this.#begin(1, 1)
    this.#bytes[at] = value ? 1 : 0
  }

  int4(value: number): void {
    const at = this.#begin(4, 4)
    this.#bytes.writeInt32BE(value, at)
  }

  int8(value: bigint): void {
    const at = this.#begin(8, 8)
    this.#bytes.writeInt32BE(Number(value >> 32n), at)
    this.#bytes.writeUInt32BE(Number(value & 0xffff_ffffn), at + 4)
  }

  /** A whole number as an `int8`. */
  count(value: number): void {
    const high = Math.floor(value / 0x1_0000_0000)
    const at = this.#begin(8, 8)
    this.#bytes.writeInt32BE(high, at)
    this.#bytes.writeUInt32BE(value - high * 0x1_0000_0000, at + 4)
  }

  uuid(text: string): void {
    let at = this.#begin(16, 16)
    let all = text.length === 36 ? 0 : -1
    for (const pair of pairs) {
      const high = digits[text.charCodeAt(pair)] ?? -1
      const low = digits[text.charCodeAt(pair + 1)] ?? -1
      all |= high | low
      this.#bytes[at] = (high << 4) | low
      at += 1
    }
    if (all < 0) throw new Error("This is no UUID")
  }

  text(value: string): void {
    if (value === this.#last) {
      const end = this.#used
      const length = 4 + this.#bytes.readInt32BE(this.#lastAt)
      this.#reserve(length)
      this.#bytes.copyWithin(end, this.#lastAt, this.#lastAt + length)
      this.#used = end + length
      this.#count += 1
      return
    }
    this.#last = value
    this.#lastAt = this.#used
    const length = this.#write(value)
    this.#bytes.writeInt32BE(length, this.#lastAt)
    this.#used = this.#lastAt + 4 + length
    this.#count += 1
  }

  /** Answers how many bytes it has. */
  #write(value: string): number {
    const { length } = value
    this.#reserve(4 + length * 3)
    const at = this.#used + 4
    const bytes = this.#bytes
    if (length > loopCharacters) return bytes.write(value, at)
    for (let n = 0; n < length; n += 1) {
      const code = value.charCodeAt(n)
      if (code > 0x7f) return bytes.write(value, at)
      bytes[at + n] = code
    }
    return length
  }

  /** The length of an element; answers where it begins. */
  #begin(length: number, size: number): number {
    this.#reserve(4 + size)
    const at = this.#used
    this.#bytes.writeInt32BE(length, at)
    this.#used = at + 4 + size
    this.#count += 1
    return at + 4
  }

  #reserve(size: number): void {
    const needed = this.#used + size
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#used)
    this.#bytes = larger
  }
}
