import { batchLinesMax, batchWebhookBytesMax } from "../../domain/limits/FileLimits.ts"
import type { FieldFault } from "../../domain/Problem.ts"

const quote = 0x22
const backslash = 0x5c
const lineFeed = 0x0a
const space = 0x20
const byteOrderMark = [0xef, 0xbb, 0xbf]
const nullLiteral = Buffer.from("null")

const opening = new Set([0x7b, 0x5b])
const closing = new Set([0x7d, 0x5d])

/** The maximum size of a member's name and the whitespace before its value. */
const nameBytesMax = 200

const keepsLines = Buffer.from([lineFeed])

type Fault = string | FieldFault

/**
 * Parses `{"requests": [{…}, …], "webhook": {…}}` incrementally and returns each request unchanged as one line. It only
 * finds where requests and the webhook begin and end; whether they are valid JSON is checked when they are read.
 * docs/reference/vendor-batches.md#anthropics-form
 */
export class RequestSplitter {
  #state: "before" | "name" | "colon" | "value" | "null" | "item" | "next" | "rest" | "after" =
    "before"
  #requests = 0
  /** Whether a comma precedes the next request. */
  #isComma = false
  #isEmpty = true
  /** The number of bytes of a byte order mark read so far. */
  #marked = 0
  #depth = 0
  /** The state within a string of a request. `escaped`: the next byte follows a backslash. */
  #text: "none" | "open" | "escaped" = "none"
  /** Whether a string contains a raw line break. */
  #isBroken = false
  #name: Array<Buffer> = []
  #nameBytes = 0
  #isNameOpen = false
  /** The member whose value is read. */
  #member: "requests" | "webhook" = "requests"
  readonly #members = new Set<string>()
  #webhook: Buffer | undefined
  /** The number of bytes of a webhook's `null` read so far. */
  #nullBytes = 0

  /** The webhook as it is written, once the body has ended. A `null` counts as absent. */
  get webhook(): Buffer | undefined {
    return this.#webhook
  }

  /**
   * The complete lines so far, without the last line's end, or the fault that makes this an invalid list of requests.
   */
  push(chunk: Uint8Array): Buffer | Fault {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const parts: Array<Buffer> = []
    for (let at = 0; at < bytes.length;) {
      if (this.#state === "item") {
        const end = this.#readItem(bytes, at)
        if (this.#isBroken) return notJson
        const part = bytes.subarray(at, end)
        if (this.#member === "webhook") {
          const fault = this.#keepWebhook(part)
          if (fault !== undefined) return fault
        } else {
          parts.push(oneLine(part))
          if (this.#depth === 0) parts.push(keepsLines)
        }
        if (this.#depth === 0) this.#state = this.#member === "webhook" ? "rest" : "next"
        at = end
        continue
      }
      const read = this.#readStructure(bytes, at)
      if (typeof read !== "number") return read
      at = read
    }
    return Buffer.concat(parts)
  }

  /** The fault of a body that is incomplete. */
  end(): Fault | undefined {
    if (this.#state === "after") return undefined
    return this.#isEmpty ? "The body is empty" : "The body is not valid JSON: it ends too early"
  }

  #keepWebhook(part: Buffer): Fault | undefined {
    this.#webhook = Buffer.concat([this.#webhook ?? Buffer.alloc(0), part])
    return this.#webhook.length > batchWebhookBytesMax ? webhookTooLarge : undefined
  }

  /** Reads to the byte after the request or the webhook, or to the end of the chunk. */
  #readItem(bytes: Buffer, from: number): number {
    let at = from
    while (at < bytes.length) {
      if (this.#text === "none") {
        const byte = bytes[at] ?? space
        at += 1
        if (byte === quote) this.#text = "open"
        else if (opening.has(byte)) this.#depth += 1
        else if (closing.has(byte)) {
          this.#depth -= 1
          if (this.#depth === 0) return at
        }
        continue
      }
      const start = at
      at = this.#readText(bytes, at)
      this.#isBroken ||= bytes.subarray(start, at).includes(lineFeed)
    }
    return at
  }

  /** Reads to the byte after the string, or to the end of the chunk. */
  #readText(bytes: Buffer, from: number): number {
    let at = this.#text === "escaped" ? from + 1 : from
    this.#text = "open"
    for (;;) {
      const end = bytes.indexOf(quote, at)
      const stop = end < 0 ? bytes.length : end
      let before = stop
      while (before > at && bytes[before - 1] === backslash) before -= 1
      const isEscaped = (stop - before) % 2 === 1
      if (end < 0) {
        this.#text = isEscaped ? "escaped" : "open"
        return bytes.length
      }
      at = end + 1
      if (!isEscaped) {
        this.#text = "none"
        return at
      }
    }
  }

  /** Reads what surrounds the requests: one byte, or a part of the member's name. */
  #readStructure(bytes: Buffer, at: number): number | Fault {
    const byte = bytes[at] ?? space
    if (this.#isNameOpen) return this.#readName(bytes, at)
    if (this.#isEmpty && byte === byteOrderMark[this.#marked]) {
      this.#marked += 1
      return at + 1
    }
    if (this.#isEmpty && this.#marked % byteOrderMark.length > 0) return notJson
    if (this.#state === "null") return this.#readNull(byte, at)
    if (byte === space || (byte >= 0x09 && byte <= 0x0d)) return at + 1
    this.#isEmpty = false
    const char = String.fromCharCode(byte)
    switch (this.#state) {
      case "before":
        if (char !== "{") return "The body is not a JSON object"
        this.#state = "name"
        return at + 1
      case "name":
        if (char === "}") return this.#isComma ? notJson : required
        if (byte !== quote) return notJson
        this.#isNameOpen = true
        return at + 1
      case "colon":
        if (char !== ":") return notJson
        this.#state = "value"
        return at + 1
      case "value":
        return this.#beginValue(char, at)
      case "next":
        return this.#readNext(char, at)
      case "rest":
        if (char === ",") {
          this.#isComma = true
          this.#state = "name"
          return at + 1
        }
        if (char !== "}") return notJson
        if (!this.#members.has("requests")) return required
        this.#state = "after"
        return at + 1
      case "item":
      case "after":
        return notJson
    }
  }

  #beginValue(char: string, at: number): number | Fault {
    if (this.#member === "webhook") {
      if (char !== "{" && char !== "n") {
        return { pointer: "#/webhook", detail: "Expected an object or null" }
      }
      this.#state = char === "{" ? "item" : "null"
      return at
    }
    if (char !== "[") return { pointer: "#/requests", detail: "Expected an array" }
    this.#state = "next"
    return at + 1
  }

  #readNull(byte: number, at: number): number | Fault {
    if (byte !== nullLiteral[this.#nullBytes]) return notJson
    this.#nullBytes += 1
    if (this.#nullBytes === nullLiteral.length) this.#state = "rest"
    return at + 1
  }

  #readNext(char: string, at: number): number | Fault {
    if (char === "]") {
      if (this.#isComma) return notJson
      this.#state = "rest"
      return at + 1
    }
    if (char === ",") {
      if (this.#requests === 0 || this.#isComma) return notJson
      this.#isComma = true
      return at + 1
    }
    if (this.#requests > 0 && !this.#isComma) return notJson
    if (char !== "{") {
      return { pointer: `#/requests/${this.#requests}`, detail: "Expected an object" }
    }
    if (this.#requests === batchLinesMax) {
      return { pointer: "#/requests", detail: `Expected at most ${batchLinesMax} requests` }
    }
    this.#isComma = false
    this.#requests += 1
    this.#state = "item"
    return at
  }

  #readName(bytes: Buffer, at: number): number | Fault {
    const end = bytes.indexOf(quote, at)
    const part = bytes.subarray(at, end < 0 ? bytes.length : end)
    this.#name.push(Buffer.from(part))
    this.#nameBytes += part.length
    if (this.#nameBytes > nameBytesMax) return unknownMember
    if (end < 0) return bytes.length
    const name = Buffer.concat(this.#name).toString("utf8")
    this.#name = []
    this.#nameBytes = 0
    this.#isNameOpen = false
    this.#isComma = false
    if (name !== "requests" && name !== "webhook") return unknownMember
    if (this.#members.has(name)) return { pointer: `#/${name}`, detail: "Expected only once" }
    this.#members.add(name)
    this.#member = name
    this.#state = "colon"
    return end + 1
  }
}

const notJson = "The body is not valid JSON"
const required: Fault = { pointer: "#/requests", detail: "Required" }
const unknownMember: Fault = {
  pointer: "#",
  detail: "Expected the members requests, an array of requests, and optionally webhook"
}
const webhookTooLarge: Fault = {
  pointer: "#/webhook",
  detail: `Expected at most ${batchWebhookBytesMax} bytes`
}

/** The whitespace between the values of a request may contain line breaks, which this removes. */
const oneLine = (bytes: Buffer): Buffer => {
  if (!bytes.includes(lineFeed)) return bytes
  const line = Buffer.from(bytes)
  for (let at = line.indexOf(lineFeed); at >= 0; at = line.indexOf(lineFeed, at + 1)) {
    line[at] = space
  }
  return line
}
