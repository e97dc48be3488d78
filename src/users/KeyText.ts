import { Schema } from "effect"
import { hash, randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const randomCharacters = 40
const checkCharacters = 6

/** A number in base 62, padded to this many characters. */
const base62 = (value: number, characters: number): string => {
  let rest = value
  let text = ""
  for (let i = 0; i < characters; i += 1) {
    text = `${alphabet[rest % 62]}${text}`
    rest = Math.floor(rest / 62)
  }
  return text
}

/**
 * A new key: `sk-`, 40 random characters (238 bits) and a checksum of 6 characters, which distinguishes a typing error
 * from an unknown key.
 */
export const generateKey = (): string => {
  let secret = ""
  while (secret.length < randomCharacters) {
    for (const byte of randomBytes(randomCharacters)) {
      // 248 is the largest multiple of 62 that a byte can hold: using larger values would favor some characters
      if (byte < 248 && secret.length < randomCharacters) secret += alphabet[byte % 62]
    }
  }
  return `sk-${secret}${base62(crc32(secret), checkCharacters)}`
}

/** The part of a key that may be displayed. */
export const previewOf = (key: string): string => `sk-...${key.slice(-4)}`

export const isWellFormed = (key: string): boolean => {
  const match = /^sk-([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/u.exec(key)
  return match?.[1] !== undefined && base62(crc32(match[1]), checkCharacters) === match[2]
}

/**
 * A plain hash, so that an index can find the key. A slow hash would not add security, because keys have 238 random
 * bits.
 */
export const hashKey = (key: string): Uint8Array => hash("sha256", key, "buffer")

/** Identifies a key in memory without storing it: SHA-256 as Base64. */
export const KeyDigest = Schema.String.pipe(Schema.brand("KeyDigest"))
export type KeyDigest = typeof KeyDigest.Type

export const digestOf = (key: string): KeyDigest => KeyDigest.make(hash("sha256", key, "base64"))
