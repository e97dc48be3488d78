import { Result } from "effect"
import { Buffer } from "node:buffer"
import {
  endOfHead,
  headEndBytes,
  lineEnd,
  notAForm,
  readHead
} from "../../domain/forms/FormHead.ts"
import { LongText } from "../../domain/json/LongText.ts"
import { formPartsMax, formTextsBytesMax } from "../../domain/limits/ShapeLimits.ts"

/** A form field: a text, a text that is too long to process in one event-loop turn, or the bytes of a file. */
export interface FormPart {
  readonly name: string
  readonly value: string | LongText | Uint8Array
}

/** Finds the parts of a form while its bytes arrive, and rejects a form with too many parts. */
export class FormScanner {
  readonly #delimiter: Buffer
  readonly #starts: Array<number> = []
  /**
   * The end of the last chunk, in which a delimiter may begin. Initially a line break, because the first delimiter
   * needs none before it.
   */
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
      // The last delimiter ends the form, so it begins no part
      if (this.#starts.length > formPartsMax + 1) return tooManyParts
      at = bytes.indexOf(this.#delimiter, at + length)
    }
    const kept = Math.min(length - 1, bytes.length)
    this.#rest = bytes.subarray(bytes.length - kept)
    this.#offset += bytes.length - kept
    return undefined
  }

  /** The parts of a form that has arrived completely. */
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

interface RawPart {
  readonly name: string
  readonly isFile: boolean
  readonly content: Buffer
}

/** Decodes the shortest texts, wherever they are; the others become `LongText`. */
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

/** Parses what is between two delimiters: the rest of the line, headers, an empty line and the content. */
const readPart = (bytes: Buffer): RawPart | undefined => {
  const end = endOfHead(bytes)
  const head = end === undefined ? undefined : readHead(bytes.toString("utf8", 0, end))
  return (
    head && {
      name: head.name,
      isFile: head.filename !== undefined,
      content: bytes.subarray((end ?? 0) + headEndBytes)
    }
  )
}
