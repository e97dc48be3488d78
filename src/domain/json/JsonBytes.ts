import { Buffer } from "node:buffer"

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
const space = 0x20

/** The index of the quote that ends the string at `open`, in valid JSON. */
const endOfString = (bytes: Buffer, open: number): number => {
  for (let end = bytes.indexOf(quote, open + 1); ; end = bytes.indexOf(quote, end + 1)) {
    let before = end - 1
    while (bytes[before] === backslash) before -= 1
    if ((end - before) % 2 === 1) return end
  }
}

const afterSpace = (bytes: Buffer, from: number): number => {
  let at = from
  while ((bytes[at] ?? quote) <= space) at += 1
  return at
}

const isOpening = (byte: number | undefined): boolean => byte === 0x7b || byte === 0x5b
const isClosing = (byte: number | undefined): boolean => byte === 0x7d || byte === 0x5d

/** The index after the value that starts at `start`. */
const endOfValue = (bytes: Buffer, start: number): number => {
  let depth = 0
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) at = endOfString(bytes, at)
    else if (isOpening(byte)) depth += 1
    else if (isClosing(byte)) depth -= 1
    else if (depth > 0 || byte !== comma) continue
    if (depth === 0 && byte === comma) return at
    if (depth < 0) return at
    if (depth === 0 && (byte === quote || isClosing(byte))) return at + 1
  }
  return bytes.length
}

/** Whether the string between two quotes equals this word. An escape has at most six bytes. */
const isWord = (bytes: Buffer, open: number, end: number, word: string): boolean =>
  end - open <= 6 * word.length + 1 && JSON.parse(bytes.toString("utf8", open, end + 1)) === word

/** Where the value of a member starts and ends; `undefined` if there is no such member. */
const rangeOf = (bytes: Buffer, key: string): readonly [start: number, end: number] | undefined => {
  for (let at = bytes.indexOf("{") + 1; at < bytes.length;) {
    const open = bytes.indexOf(quote, at)
    if (open < 0) return undefined
    const end = endOfString(bytes, open)
    const start = afterSpace(bytes, afterSpace(bytes, end + 1) + 1)
    const valueEnd = endOfValue(bytes, start)
    if (bytes[afterSpace(bytes, end + 1)] === colon && isWord(bytes, open, end, key)) {
      return [start, valueEnd]
    }
    at = valueEnd
  }
  return undefined
}

/** The bytes of one member of a JSON object, as they are written there. */
export const memberOf = (given: Uint8Array, key: string): Uint8Array | undefined => {
  const range = rangeOf(Buffer.from(given.buffer, given.byteOffset, given.byteLength), key)
  return range && given.subarray(range[0], range[1])
}

/**
 * The bytes of a JSON object with a new value for one member, which occurs at most once. All other bytes are unchanged,
 * because a parser would round large numbers.
 */
export const withMember = (given: Uint8Array, key: string, value: unknown): Uint8Array => {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  const range = rangeOf(bytes, key)
  if (range === undefined) return given
  const written = Buffer.from(JSON.stringify(value))
  return Buffer.concat([bytes.subarray(0, range[0]), written, bytes.subarray(range[1])])
}

/** The bytes of a JSON object without one member, which occurs at most once. */
export const withoutMember = (given: Uint8Array, key: string): Uint8Array => {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  let before = bytes.indexOf("{") + 1
  for (let at = before; at < bytes.length;) {
    const open = bytes.indexOf(quote, at)
    if (open < 0) break
    const end = endOfString(bytes, open)
    const valueEnd = endOfValue(bytes, afterSpace(bytes, afterSpace(bytes, end + 1) + 1))
    if (bytes[afterSpace(bytes, end + 1)] === colon && isWord(bytes, open, end, key)) {
      const next = afterSpace(bytes, valueEnd)
      // Also removes the comma that follows the member, or else the one before it
      return bytes[next] === comma
        ? Buffer.concat([bytes.subarray(0, open), bytes.subarray(next + 1)])
        : Buffer.concat([bytes.subarray(0, before), bytes.subarray(valueEnd)])
    }
    before = valueEnd
    at = valueEnd
  }
  return given
}

/** The bytes of a JSON object with one more member, in first position. */
export const withFirstMember = (given: Uint8Array, key: string, value: unknown): Uint8Array => {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  const start = bytes.indexOf("{") + 1
  const isEmpty = bytes[afterSpace(bytes, start)] === 0x7d
  const member = `{${JSON.stringify(key)}:${JSON.stringify(value)}${isEmpty ? "" : ","}`
  return Buffer.concat([Buffer.from(member), bytes.subarray(start)])
}
