import { Buffer } from "node:buffer"
import { endOfString } from "../../domain/json/JsonBytes.ts"

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a

/** Shorter strings are kept even if they look encoded, because they may be ids or signatures. */
const mediaBytesMin = 1024

/** How many bytes of a string are examined to decide whether it is Base64. No word is that long. */
const encodedBytes = 96

/** Members whose values are credentials, such as those of the tools in a request. */
const secretNames =
  /^(?:(?:proxy-)?authorization(?:_token)?|x-api-key|x-goog-api-key|api[-_]?key|access_?token|client_?secret|password|secret|cookie)$/iu
const headersName = /^(?:headers|http_headers|extra_headers)$/iu

/** Longer member names are not compared. */
const nameBytesMax = 64

/** The part of a body that is stored. */
export interface KeptText {
  readonly text: string
  /** Whether the text is only the beginning of the body. */
  readonly truncated: boolean
}

/** Collects bytes up to a limit. */
class Output {
  readonly #parts: Array<Uint8Array> = []
  left: number
  isOver = false

  constructor(bytesMax: number) {
    this.left = bytesMax
  }

  add(bytes: Uint8Array): void {
    if (bytes.length > this.left) this.isOver = true
    if (this.left === 0) return
    this.#parts.push(bytes.subarray(0, this.left))
    this.left -= Math.min(bytes.length, this.left)
  }

  text(): string {
    const text = Buffer.concat(this.#parts).toString("utf8")
    // The last character may have been cut
    return this.isOver ? text.replace(/\uFFFD$/u, "") : text
  }
}

/** The end of the encoded media that start at `from`; `undefined` for any other string. */
const endOfMedia = (bytes: Buffer, from: number): number | undefined => {
  const start = bytes.toString("latin1", from, from + encodedBytes)
  if (!/^(?:data:[^"\\]*$|[\w+/-]+=*$)/u.test(start)) return undefined
  const found = bytes.indexOf(quote, from)
  const end = found < 0 ? bytes.length : found
  return end - from < mediaBytesMin || bytes[end - 1] === backslash ? undefined : end
}

/** A description that replaces media. */
const mediaOf = (bytes: Buffer, from: number, end: number): string => {
  const [start = "", type] =
    /^data:([\w.+-]+\/[\w.+-]+)?[^,]*,/u.exec(bytes.toString("latin1", from, from + 256)) ?? []
  const size = Math.floor(((end - from - start.length) * 3) / 4)
  return mediaReference(type ?? "base64", size)
}

export const mediaReference = (type: string, bytes: number): string => `[${type}, ${bytes} bytes]`

/** Whether the string that ends at `end` is a member's name. */
const isName = (bytes: Buffer, end: number): boolean => {
  let at = end + 1
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09)
    at += 1
  return bytes[at] === colon
}

/** Decides which values to hide: those of secret members, and all values in an object of headers. */
class Hiding {
  #name = ""
  #depth = 0

  /** Processes the bytes between two strings. */
  between(bytes: Uint8Array): void {
    for (const byte of bytes) {
      const isOpen = byte === 0x7b
      if (isOpen && (this.#depth > 0 || headersName.test(this.#name))) this.#depth += 1
      if (byte !== 0x7d) continue
      this.#name = ""
      if (this.#depth > 0) this.#depth -= 1
    }
  }

  named(name: string): void {
    this.#name = name.includes("\\") ? unescaped(name) : name
  }

  get hidesValue(): boolean {
    return this.#depth > 0 || secretNames.test(this.#name)
  }
}

const unescaped = (name: string): string => {
  try {
    return String(JSON.parse(`"${name}"`))
  } catch {
    return name
  }
}

const hidden = Buffer.from(`"[hidden]"`)

/**
 * The text of a body without media and credentials. The body is JSON, or server-sent events with JSON data. Reads
 * only as much of the body as is kept and the media in between, so a large body costs no more than a small one.
 */
export const keptText = (body: Uint8Array, bytesMax: number): KeptText => {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const output = new Output(bytesMax)
  const hiding = new Hiding()
  let at = 0
  while (at < bytes.length && output.left > 0) {
    const until = Math.min(bytes.length, at + output.left + 1)
    const found = bytes.subarray(at, until).indexOf(quote)
    const open = found < 0 ? until : at + found
    hiding.between(bytes.subarray(at, Math.min(open, at + output.left)))
    output.add(bytes.subarray(at, open))
    at = open
    if (open === until) break
    const from = open + 1
    const media = endOfMedia(bytes, from)
    const end = media ?? endOfString(bytes, from, Math.min(bytes.length, from + output.left + 1))
    if (isName(bytes, end)) {
      hiding.named(bytes.toString("utf8", from, Math.min(end, from + nameBytesMax)))
      output.add(bytes.subarray(open, end + 1))
    } else if (hiding.hidesValue) output.add(hidden)
    else if (media === undefined) output.add(bytes.subarray(open, end + 1))
    else output.add(Buffer.from(JSON.stringify(mediaOf(bytes, from, media))))
    at = end + 1
  }
  if (at < bytes.length && output.left === 0) output.isOver = true
  return { text: output.text(), truncated: output.isOver }
}
