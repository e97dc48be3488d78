import { Option } from "effect"
import { Buffer } from "node:buffer"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
const strict = /^[A-Za-z0-9+/]*={0,2}$/u

const paddingOf = (text: string): number => (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0)

/** How many bytes a Base64 text stands for, without decoding it. */
export const decodedBytes = (text: string): number =>
  Math.floor((text.length - paddingOf(text)) * 0.75)

/** The bits that padding cuts off must be zero, so that one text alone stands for the bytes. */
const isCanonical = (text: string): boolean => {
  const padding = paddingOf(text)
  if (padding === 0) return true
  const last = alphabet.indexOf(text.charAt(text.length - padding - 1))
  return last % (padding === 2 ? 16 : 4) === 0
}

/** Decodes Base64 by the letter (RFC 4648, section 4): padded, no blanks, no stray bits. Contract 5. */
export const decodeBase64 = (text: string): Option.Option<Uint8Array> =>
  text.length % 4 === 0 && strict.test(text) && isCanonical(text)
    ? Option.some(new Uint8Array(Buffer.from(text, "base64")))
    : Option.none()
