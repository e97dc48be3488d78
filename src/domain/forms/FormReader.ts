import { Buffer } from "node:buffer"
import { formHeaderBytesMax, formPartsMax } from "../limits/ShapeLimits.ts"
import { endOfHead, headEndBytes, notAForm, readHead } from "./FormHead.ts"

/** Called as the parts of a form are read. */
export interface FormHandlers {
  /** Receives a complete field. Returns its fault, if it has one. */
  readonly onField: (name: string, text: string) => string | undefined
  /** Called at the beginning of a file. Returns its fault, if it has one. */
  readonly onFile: (name: string, filename: string) => string | undefined
  readonly onFileBytes: (bytes: Buffer) => void
}

/** The maximum size of a field. A longer field is not kept. */
const fieldBytesMax = 1024

const empty = Buffer.alloc(0)

type State = "head" | "field" | "file" | "ended"

/** Reads `multipart/form-data` as it passes. Keeps only the headers of a part or a short field in memory. RFC 7578 */
export class FormReader {
  readonly #delimiter: Buffer
  readonly #handlers: FormHandlers
  /** The end of the last chunk, where a delimiter or the headers of a part may continue. */
  #rest: Buffer = Buffer.from("\r\n")
  /** Text is allowed before the first delimiter. */
  #state: State | "before" = "before"
  #name = ""
  #field: Buffer = empty
  #parts = 0

  constructor(boundary: string, handlers: FormHandlers) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1")
    this.#handlers = handlers
  }

  /** Whether the last delimiter has arrived. */
  get isEnded(): boolean {
    return this.#state === "ended"
  }

  /** Returns the fault of the form, once it is known. */
  push(chunk: Buffer): string | undefined {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    while (this.#state !== "ended") {
      const next = this.#state === "head" ? this.#head(bytes, at) : this.#content(bytes, at)
      if (typeof next === "string") return next
      if (next === undefined) break
      at = next
    }
    return undefined
  }

  /** Reads the headers of a part. Returns where its content begins, or `undefined` if that has not arrived. */
  #head(bytes: Buffer, at: number): number | string | undefined {
    const left = bytes.subarray(at)
    if (left.length >= 2 && left.toString("latin1", 0, 2) === "--") {
      this.#state = "ended"
      return at
    }
    const end = endOfHead(left)
    if (end === undefined) {
      this.#rest = Buffer.from(left)
      return left.length > formHeaderBytesMax ? notAForm : undefined
    }
    const head = readHead(left.toString("utf8", 0, end))
    this.#parts += 1
    if (head === undefined) return notAForm
    if (this.#parts > formPartsMax) return `The form has more than ${formPartsMax} parts`
    this.#name = head.name
    this.#field = empty
    this.#state = head.filename === undefined ? "field" : "file"
    const fault =
      head.filename === undefined ? undefined : this.#handlers.onFile(head.name, head.filename)
    return fault ?? at + end + headEndBytes
  }

  /** Reads up to the next delimiter. Returns where the delimiter ends, or `undefined` if it has not arrived. */
  #content(bytes: Buffer, at: number): number | string | undefined {
    const end = bytes.indexOf(this.#delimiter, at)
    const sure = end < 0 ? Math.max(at, bytes.length - this.#delimiter.length + 1) : end
    const content = bytes.subarray(at, sure)
    if (this.#state === "file") this.#handlers.onFileBytes(content)
    if (this.#state === "field" && this.#field.length <= fieldBytesMax) {
      this.#field = Buffer.concat([this.#field, content])
    }
    if (end < 0) {
      this.#rest = Buffer.from(bytes.subarray(sure))
      return undefined
    }
    const fault =
      this.#state === "field"
        ? this.#handlers.onField(this.#name, this.#field.toString("utf8", 0, fieldBytesMax))
        : undefined
    this.#state = "head"
    return fault ?? end + this.#delimiter.length
  }
}
