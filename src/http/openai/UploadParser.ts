import { Buffer } from "node:buffer"
import { notAForm } from "../../domain/forms/FormHead.ts"
import { FormReader } from "../../domain/forms/FormReader.ts"
import { uploadFieldsBytesMax } from "../../domain/limits/FileLimits.ts"

/** The maximum number of fields of an upload. */
const fieldsMax = 16

/** Parses a form with one file while its bytes arrive. Stores only the other fields. */
export class UploadParser {
  /** The text fields. */
  readonly fields = new Map<string, string>()
  /** The name of the file, known once its part has begun. */
  filename: string | undefined
  readonly #reader: FormReader
  #found: Array<Buffer> = []
  #fields = 0
  /** The number of bytes outside the file. */
  #otherBytes = 0

  constructor(boundary: string) {
    this.#reader = new FormReader(boundary, {
      onField: (name, text) => {
        this.#fields += 1
        this.fields.set(name, text)
        return this.#fields > fieldsMax ? notAForm : undefined
      },
      onFile: (name, filename) => {
        if (name !== "file" || this.filename !== undefined) {
          return "Expected one file, as the field file"
        }
        this.filename = filename
        return undefined
      },
      onFileBytes: (bytes) => {
        if (bytes.length > 0) this.#found.push(bytes)
      }
    })
  }

  /** The bytes of the file in this chunk, or the fault of the form. */
  push(chunk: Uint8Array): Uint8Array | string {
    this.#found = []
    const fault = this.#reader.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    if (fault !== undefined) return fault
    const [first, ...more] = this.#found
    const bytes = first !== undefined && more.length === 0 ? first : Buffer.concat(this.#found)
    this.#otherBytes += chunk.length - bytes.length
    return this.#otherBytes > uploadFieldsBytesMax
      ? "The fields other than the file are too long"
      : bytes
  }

  /** The fault of a form that has arrived. */
  end(): string | undefined {
    return this.#reader.isEnded ? undefined : notAForm
  }
}
