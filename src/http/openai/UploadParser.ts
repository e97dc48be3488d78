import { Buffer } from "node:buffer"
import { uploadFieldsBytesMax } from "../../domain/FileLimits.ts"
import { dispositionOf, notAForm } from "../../domain/forms/FormHead.ts"
import { formHeaderBytesMax } from "../../domain/ShapeLimits.ts"

const lineEnd = "\r\n"
const headersEnd = Buffer.from("\r\n\r\n")
const nothing = Buffer.alloc(0)

/** Parts of an upload: the file and its few fields. */
const partsMax = 16

/**
 * Reads a form with one file while its bytes arrive, and keeps its other fields only. RFC 2046, section 5.1.1
 */
export class UploadParser {
  /** The fields that are texts. */
  readonly fields = new Map<string, string>()
  /** Of the file, once its part has begun. */
  filename: string | undefined
  readonly #delimiter: Buffer
  /** The first delimiter needs no line end before it. */
  #rest: Buffer = Buffer.from(lineEnd)
  #state: "preamble" | "headers" | "text" | "file" | "end" = "preamble"
  #name = ""
  #text: Array<Buffer> = []
  #textBytes = 0
  #parts = 0

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`${lineEnd}--${boundary}`, "latin1")
  }

  /** The bytes of the file in this chunk, or what is wrong with the form. */
  push(chunk: Uint8Array): Uint8Array | string {
    let bytes: Buffer =
      this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk])
    const found: Array<Buffer> = []
    for (;;) {
      if (this.#state === "end") {
        this.#rest = nothing
        break
      }
      if (this.#state === "headers") {
        const next = this.#readHeaders(bytes)
        if (typeof next === "string") return next
        if (next === undefined) {
          this.#rest = bytes
          break
        }
        bytes = next
        continue
      }
      const end = bytes.indexOf(this.#delimiter)
      // The delimiter may begin at the end of this chunk
      const until = end < 0 ? Math.max(0, bytes.length - this.#delimiter.length + 1) : end
      const fault = this.#take(bytes.subarray(0, until), found)
      if (fault !== undefined) return fault
      if (end < 0) {
        this.#rest = Buffer.from(bytes.subarray(until))
        break
      }
      this.#endPart()
      bytes = bytes.subarray(end + this.#delimiter.length)
    }
    return found.length === 1 && found[0] !== undefined ? found[0] : Buffer.concat(found)
  }

  /** What is wrong with a form that has arrived. */
  end(): string | undefined {
    return this.#state === "end" ? undefined : notAForm
  }

  #take(bytes: Buffer, found: Array<Buffer>): string | undefined {
    if (this.#state === "file") {
      if (bytes.length > 0) found.push(bytes)
      return undefined
    }
    this.#textBytes += bytes.length
    if (this.#textBytes > uploadFieldsBytesMax) return "The fields beside the file are too long"
    if (this.#state === "text") this.#text.push(Buffer.from(bytes))
    return undefined
  }

  #endPart(): void {
    if (this.#state === "text") {
      this.fields.set(this.#name, Buffer.concat(this.#text).toString("utf8"))
    }
    this.#text = []
    this.#state = "headers"
  }

  /** What follows the headers of a part; `undefined`: they have not arrived. */
  #readHeaders(bytes: Buffer): Buffer | string | undefined {
    if (bytes.length < 2) return undefined
    if (bytes.toString("latin1", 0, 2) === "--") {
      this.#state = "end"
      return nothing
    }
    const end = bytes.subarray(0, formHeaderBytesMax).indexOf(headersEnd)
    if (end < 0) return bytes.length < formHeaderBytesMax ? undefined : notAForm
    const [first = "", ...lines] = bytes.toString("utf8", 0, end).split(lineEnd)
    const part = first.trim() === "" ? dispositionOf(lines) : undefined
    this.#parts += 1
    if (part === undefined || this.#parts > partsMax) return notAForm
    if (part.filename === undefined) {
      this.#state = "text"
      this.#name = part.name
    } else {
      if (part.name !== "file" || this.filename !== undefined) {
        return "Expected one file, as the field file"
      }
      this.#state = "file"
      this.filename = part.filename
    }
    return bytes.subarray(end + headersEnd.length)
  }
}
