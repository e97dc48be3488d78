import { Buffer } from "node:buffer"
import { sliceBytes } from "../../domain/shares/Slices.ts"
import type { Sliced } from "../../domain/shares/Slices.ts"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
const strict = /^[A-Za-z0-9+/]*={0,2}$/u
const unpadded = /^[A-Za-z0-9+/]*$/u

/** A text, as a string or as bytes of one character each. */
export interface Characters {
  readonly length: number
  readonly slice: (from: number, to: number) => string
}

export const charactersOf = (bytes: Uint8Array): Characters => {
  const { buffer, byteLength, byteOffset } = bytes
  const all = Buffer.from(buffer, byteOffset, byteLength)
  return { length: byteLength, slice: (from, to) => all.toString("latin1", from, to) }
}

const paddingOf = (text: Characters): number => {
  const end = text.slice(Math.max(0, text.length - 2), text.length)
  return end === "==" ? 2 : end.endsWith("=") ? 1 : 0
}

/** The decoded size, computed without decoding. */
export const decodedBytes = (text: Characters): number =>
  Math.floor((text.length - paddingOf(text)) * 0.75)

/** The bits that padding cuts off must be zero, so that bytes have only one valid text. */
const isCanonical = (text: Characters): boolean => {
  const padding = paddingOf(text)
  if (padding === 0) return true
  const end = text.length - padding
  const last = alphabet.indexOf(text.slice(end - 1, end))
  return last % (padding === 2 ? 16 : 4) === 0
}

/**
 * Strict Base64 of RFC 4648, section 4: padded, no blanks, no stray bits. `undefined` if invalid.
 * docs/reference/models.md#media-in-bodies
 */
export const decodeBase64 = function* (text: Characters): Sliced<Uint8Array | undefined> {
  if (text.length % 4 !== 0 || !isCanonical(text)) return undefined
  const bytes = new Uint8Array(decodedBytes(text))
  const target = Buffer.from(bytes.buffer)
  for (let at = 0; at < text.length; at += sliceBytes) {
    if (at > 0) yield
    const slice = text.slice(at, at + sliceBytes)
    const isLast = at + sliceBytes >= text.length
    if (!(isLast ? strict : unpadded).test(slice)) return undefined
    target.write(slice, (at / 4) * 3, "base64")
  }
  return bytes
}

/** The text from `start` on. */
export const withoutStart = (text: Characters, start: number): Characters => ({
  length: text.length - start,
  slice: (from, to) => text.slice(from + start, to + start)
})
