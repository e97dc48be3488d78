import { Redacted } from "effect"
import type { AccountSetting } from "../../domain/Provider.ts"
import type { UpstreamHeaders } from "./UpstreamExchange.ts"

/**
 * A shorter key is not masked: it is the placeholder of a server without keys (`none`, `EMPTY`), a word that may occur
 * in responses.
 */
const secretBytesMin = 8

/**
 * A text this short is searched by its first byte, which is rare if it is a capital or a digit. This is ten times as
 * fast as searching for a whole key.
 */
const markBytes = 6

const asterisk = "*".charCodeAt(0)
const newline = "\n".charCodeAt(0)
const empty = Buffer.alloc(0)

/**
 * Overwrites an account's key in its vendor's responses with asterisks of the same length, so that lengths and JSON
 * stay intact. Changes nothing else. docs/reference/passthrough.md#what-is-relayed
 */
export class SecretMask {
  readonly #secret: Buffer | undefined
  /** The part of the key that is fastest to search for. */
  readonly #mark: Buffer
  readonly #text: string

  private constructor(account: AccountSetting) {
    this.#text = Redacted.value(account.key)
    this.#secret = this.#text.length < secretBytesMin ? undefined : Buffer.from(this.#text)
    const start = Math.max(0, this.#text.slice(0, 1 - markBytes).search(/[A-Z]|\d/u))
    this.#mark = Buffer.from(this.#text.slice(start, start + markBytes))
  }

  static #known = new WeakMap<AccountSetting, SecretMask>()

  static of(account: AccountSetting): SecretMask {
    const known = SecretMask.#known.get(account)
    if (known !== undefined) return known
    const made = new SecretMask(account)
    SecretMask.#known.set(account, made)
    return made
  }

  /** Masks a whole body. */
  bytes(whole: Uint8Array): Buffer {
    const secret = this.#secret
    const body = Buffer.isBuffer(whole)
      ? whole
      : Buffer.from(whole.buffer, whole.byteOffset, whole.length)
    if (secret === undefined || !body.includes(this.#mark)) return body
    let at = body.indexOf(secret)
    if (at < 0) return body
    const masked = Buffer.from(body)
    for (; at >= 0; at = masked.indexOf(secret, at + secret.length)) {
      masked.fill(asterisk, at, at + secret.length)
    }
    return masked
  }

  /** Masks headers; returns the same object if no value contains the key. */
  headers(headers: UpstreamHeaders): UpstreamHeaders {
    if (this.#secret === undefined) return headers
    let masked: Record<string, string | Array<string> | undefined> | undefined
    for (const name of Object.keys(headers)) {
      const value = headers[name]
      if (value === undefined) continue
      const isShort = typeof value === "string" && value.length < this.#text.length
      if (isShort || !String(value).includes(this.#text)) continue
      masked ??= { ...headers }
      masked[name] =
        typeof value === "string" ? this.#hide(value) : value.map((one) => this.#hide(one))
    }
    return masked ?? headers
  }

  #hide(value: string): string {
    return value.replaceAll(this.#text, "*".repeat(this.#text.length))
  }

  /** The number of bytes at the end that may be the beginning of the secret. */
  openEnd(data: Buffer): number {
    const secret = this.#secret
    // A key contains no line break, and most chunks of a stream end with one
    if (secret === undefined || data.at(-1) === newline) return 0
    for (let length = Math.min(secret.length - 1, data.length); length > 0; length -= 1) {
      const start = data.length - length
      if (data[start] === secret[0] && data.compare(secret, 0, length, start) === 0) return length
    }
    return 0
  }
}

/** Masks a body that arrives in chunks; a secret may be split across two. */
export class MaskedStream {
  readonly #mask: SecretMask
  /** Bytes that may be the beginning of a secret. */
  #rest: Buffer = empty

  constructor(mask: SecretMask) {
    this.#mask = mask
  }

  push(chunk: Buffer): Buffer {
    const data = this.#mask.bytes(
      this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    )
    const open = this.#mask.openEnd(data)
    this.#rest = open === 0 ? empty : data.subarray(data.length - open)
    return open === 0 ? data : data.subarray(0, data.length - open)
  }

  /** Returns the bytes that were held back, at the end of the body. */
  flush(): Buffer {
    const rest = this.#rest
    this.#rest = empty
    return rest
  }
}
