import { Result } from "effect"
import { Buffer } from "node:buffer"
import { textBytesMax, textsBytesMax } from "../../domain/JsonLimits.ts"
import { LongText } from "../../domain/LongText.ts"
import { formHeaderBytesMax, formPartsMax } from "../../domain/ShapeLimits.ts"

/** A field of a form: a text, one that is too long for a turn of the event loop, or the bytes of a file. */
export interface FormPart {
  readonly name: string
  readonly value: string | LongText | Uint8Array
}

const lineEnd = "\r\n"
const headersEnd = Buffer.from("\r\n\r\n")

/** Of `multipart/form-data`. RFC 2046, section 5.1.1 */
const boundaryIn = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/iu

/** The boundary that a content type names. */
export const boundaryOf = (contentType: string): string | undefined => {
  const match = boundaryIn.exec(contentType)
  return match?.[1] ?? match?.[2]
}

/** Finds the parts of a form while its bytes arrive, and refuses a form with too many. */
export class FormScanner {
  readonly #delimiter: Buffer
  readonly #starts: Array<number> = []
  /** The end of the last chunk, in which a delimiter may begin. The first one needs no line end before it. */
  #rest = Buffer.from(lineEnd)
  #offset = -lineEnd.length

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`${lineEnd}--${boundary}`, "latin1")
  }

  add(chunk: Uint8Array): string | undefined {
    const bytes = Buffer.concat([this.#rest, chunk])
    const { length } = this.#delimiter
    for (let at = bytes.indexOf(this.#delimiter); at >= 0;) {
      this.#starts.push(this.#offset + at)
      // The last delimiter ends the form
      if (this.#starts.length > formPartsMax + 1) return tooManyParts
      at = bytes.indexOf(this.#delimiter, at + length)
    }
    const kept = Math.min(length - 1, bytes.length)
    this.#rest = bytes.subarray(bytes.length - kept)
    this.#offset += bytes.length - kept
    return undefined
  }

  /** The parts of a form that has arrived. */
  parts(whole: Uint8Array): Result.Result<ReadonlyArray<FormPart>, string> {
    const bytes = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength)
    const parts: Array<FormPart> = []
    let textBytes = 0
    for (const [index, start] of this.#starts.entries()) {
      const from = start + this.#delimiter.length
      if (bytes.toString("latin1", from, from + 2) === "--") return Result.succeed(parts)
      const end = this.#starts[index + 1]
      const part = end === undefined ? undefined : readPart(bytes.subarray(from, end))
      if (part === undefined) return Result.fail(notAForm)
      if (!part.isFile) textBytes += part.content.length
      parts.push({
        name: part.name,
        value: part.isFile ? part.content : textOf(part.content, textBytes)
      })
    }
    return Result.fail(notAForm)
  }
}

const tooManyParts = `The form has more than ${formPartsMax} parts`
export const notAForm = "The body is not a valid form"

const textOf = (content: Buffer, textBytes: number): string | LongText =>
  content.length > textBytesMax || textBytes > textsBytesMax
    ? new LongText(content, false)
    : content.toString("utf8")

/** What stands between two delimiters: the rest of a line, headers, an empty line, the content. */
const readPart = (bytes: Buffer) => {
  const head = bytes.subarray(0, formHeaderBytesMax)
  const end = head.indexOf(headersEnd)
  if (end < 0) return undefined
  const [first = "", ...lines] = head.toString("utf8", 0, end).split(lineEnd)
  if (first.trim() !== "") return undefined
  const disposition = lines.find((line) => /^content-disposition\s*:\s*form-data\b/iu.test(line))
  const name = disposition && parameterOf(disposition, "name")
  if (name === undefined) return undefined
  const isFile = disposition !== undefined && parameterOf(disposition, "filename\\*?") !== undefined
  return { name, isFile, content: bytes.subarray(end + headersEnd.length) }
}

/** A quoted parameter, as browsers and clients escape it (WHATWG, multipart/form-data), or a bare one. */
const parameterOf = (line: string, name: string): string | undefined => {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, "iu").exec(line)
  const text = match?.[1]?.replaceAll(/\\(["\\])/gu, "$1") ?? match?.[2]
  return text?.replaceAll(/%0a/giu, "\n").replaceAll(/%0d/giu, "\r").replaceAll(/%22/gu, '"')
}
