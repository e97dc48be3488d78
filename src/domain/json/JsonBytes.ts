import { Buffer } from "node:buffer"

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
const space = 0x20

/** The index of the quote that closes the string whose content starts at `from`, or `until`. */
export const endOfString = (bytes: Buffer, from: number, until = bytes.length): number => {
  for (
    let at = bytes.indexOf(quote, from);
    at >= 0 && at < until;
    at = bytes.indexOf(quote, at + 1)
  ) {
    let start = at
    while (start > from && bytes[start - 1] === backslash) start -= 1
    if ((at - start) % 2 === 0) return at
  }
  return until
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
    if (byte === quote) at = endOfString(bytes, at + 1)
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

/** Where a member is: after the previous one, its key with its quote, its value, and the end of its value. */
interface Member {
  readonly before: number
  readonly open: number
  readonly start: number
  readonly end: number
}

const findMember = (bytes: Buffer, key: string): Member | undefined => {
  for (let before = bytes.indexOf("{") + 1; before < bytes.length;) {
    const open = bytes.indexOf(quote, before)
    if (open < 0) return undefined
    const close = endOfString(bytes, open + 1)
    const after = afterSpace(bytes, close + 1)
    const start = afterSpace(bytes, after + 1)
    const end = endOfValue(bytes, start)
    if (bytes[after] === colon && isWord(bytes, open, close, key)) {
      return { before, open, start, end }
    }
    before = end
  }
  return undefined
}

const bufferOf = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** The bytes of one member of a JSON object, as they are written there. */
export const memberOf = (given: Uint8Array, key: string): Uint8Array | undefined => {
  const member = findMember(bufferOf(given), key)
  return member && given.subarray(member.start, member.end)
}

/**
 * The bytes of a JSON object with a new value for one member, which occurs at most once. All other bytes are unchanged,
 * because a parser would round large numbers.
 */
export const withMember = (given: Uint8Array, key: string, value: unknown): Uint8Array => {
  const bytes = bufferOf(given)
  const member = findMember(bytes, key)
  if (member === undefined) return given
  const written = Buffer.from(JSON.stringify(value))
  return Buffer.concat([bytes.subarray(0, member.start), written, bytes.subarray(member.end)])
}

/** The bytes of a JSON object without one member, which occurs at most once. */
export const withoutMember = (given: Uint8Array, key: string): Uint8Array => {
  const bytes = bufferOf(given)
  const member = findMember(bytes, key)
  if (member === undefined) return given
  const { before, end, open } = member
  const next = afterSpace(bytes, end)
  // Also removes the comma that follows the member, or else the one before it
  return bytes[next] === comma
    ? Buffer.concat([bytes.subarray(0, open), bytes.subarray(next + 1)])
    : Buffer.concat([bytes.subarray(0, before), bytes.subarray(end)])
}

/** The bytes of a JSON object with one more member, in first position. */
export const withFirstMember = (given: Uint8Array, key: string, value: unknown): Uint8Array => {
  const bytes = bufferOf(given)
  const start = bytes.indexOf("{") + 1
  const isEmpty = bytes[afterSpace(bytes, start)] === 0x7d
  const member = `{${JSON.stringify(key)}:${JSON.stringify(value)}${isEmpty ? "" : ","}`
  return Buffer.concat([Buffer.from(member), bytes.subarray(start)])
}
