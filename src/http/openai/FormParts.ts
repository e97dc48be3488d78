import { Result } from "effect"
import { Buffer } from "node:buffer"
import { LongText } from "../../domain/LongText.ts"
import { formHeaderBytesMax, formPartsMax, formTextsBytesMax } from "../../domain/ShapeLimits.ts"

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
    const parts: Array<RawPart> = []
    for (const [index, start] of this.#starts.entries()) {
      const from = start + this.#delimiter.length
      if (bytes.toString("latin1", from, from + 2) === "--") return Result.succeed(withTexts(parts))
      const end = this.#starts[index + 1]
      const part = end === undefined ? undefined : readPart(bytes.subarray(from, end))
      if (part === undefined) return Result.fail(notAForm)
      parts.push(part)
    }
    return Result.fail(notAForm)
  }
}

const tooManyParts = `The form has more than ${formPartsMax} parts`
export const notAForm = "The body is not a valid form"

interface RawPart {
  readonly name: string
  readonly isFile: boolean
  readonly content: Buffer
}

/** Decodes the shortest texts, in any position; the others become `LongText`. */
const withTexts = (parts: ReadonlyArray<RawPart>): ReadonlyArray<FormPart> => {
  const decoded = new Set<RawPart>()
  let bytes = 0
  const texts = parts.filter(({ isFile }) => !isFile)
  for (const part of texts.toSorted((a, b) => a.content.length - b.content.length)) {
    bytes += part.content.length
    if (bytes > formTextsBytesMax) break
    decoded.add(part)
  }
  return parts.map((part) => ({ name: part.name, value: valueOf(part, decoded.has(part)) }))
}

const valueOf = ({ content, isFile }: RawPart, isDecoded: boolean): FormPart["value"] => {
  if (isFile) return content
  return isDecoded ? content.toString("utf8") : new LongText(content, false)
}

/** What stands between two delimiters: the rest of a line, headers, an empty line, the content. */
const readPart = (bytes: Buffer): RawPart | undefined => {
  const head = bytes.subarray(0, formHeaderBytesMax)
  const end = head.indexOf(headersEnd)
  if (end < 0) return undefined
  const [first = "", ...lines] = head.toString("utf8", 0, end).split(lineEnd)
  if (first.trim() !== "") return undefined
  const part = dispositionOf(lines)
  if (part === undefined) return undefined
  const { filename, name } = part
  const isFile = filename !== undefined
  return { name, isFile, content: bytes.subarray(end + headersEnd.length) }
}

/** What the headers of a part say of it; files have a name. */
export const dispositionOf = (
  lines: ReadonlyArray<string>
): { readonly name: string; readonly filename: string | undefined } | undefined => {
  const line = lines.find((it) => /^content-disposition\s*:\s*form-data\b/iu.test(it))
  const name = line && parameterOf(line, "name")
  if (line === undefined || name === undefined) return undefined
  return { name, filename: parameterOf(line, "filename\\*?") }
}

/** A quoted parameter, as browsers and clients escape it (WHATWG, multipart/form-data), or a bare one. */
const parameterOf = (line: string, name: string): string | undefined => {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, "iu").exec(line)
  const text = match?.[1]?.replaceAll(/\\(["\\])/gu, "$1") ?? match?.[2]
  return text?.replaceAll(/%0a/giu, "\n").replaceAll(/%0d/giu, "\r").replaceAll(/%22/gu, '"')
}
