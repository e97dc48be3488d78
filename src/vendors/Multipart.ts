import { Effect } from "effect"
import { randomUUID } from "node:crypto"

export interface FormFile {
  readonly name: string
  readonly mime: string
  readonly bytes: Uint8Array
}

/** The header text after a field's name, and the field's bytes. Names never contain client text. */
const contentOf = (value: string | FormFile): readonly [string, Uint8Array] =>
  typeof value === "string"
    ? ["", Buffer.from(value)]
    : [`; filename="${value.name}"\r\nContent-Type: ${value.mime}`, value.bytes]

/** A form with one file, which is sent as it is read. */
export interface StreamedForm {
  readonly contentType: string
  /** The bytes before and after the file. */
  readonly head: Uint8Array
  readonly tail: Uint8Array
}

/** Builds the same body as `multipart`, for a file that is not in memory. */
export const streamedForm = (
  fields: ReadonlyArray<readonly [string, string]>,
  file: { readonly field: string; readonly name: string; readonly mime: string }
): Effect.Effect<StreamedForm> =>
  Effect.map(
    multipart([...fields, [file.field, { name: file.name, mime: file.mime, bytes: none }]]),
    ({ body, contentType }) => {
      const end = Buffer.from(`\r\n--${contentType.slice(contentType.indexOf("=") + 1)}--\r\n`)
      return { contentType, head: body.subarray(0, body.length - end.length), tail: end }
    }
  )

const none = new Uint8Array()

/**
 * A `multipart/form-data` body, its fields in order. Not `FormData`, which changes line breaks to CRLF: a prompt is
 * sent as the client wrote it, because it is compared with the prompt in the vendor's list.
 */
export const multipart = (
  fields: ReadonlyArray<readonly [string, string | FormFile]>
): Effect.Effect<{ readonly contentType: string; readonly body: Uint8Array }> =>
  Effect.sync(() => {
    const boundary = `gateway-${randomUUID()}`
    const parts = fields.flatMap(([name, value]) => {
      const [more, bytes] = contentOf(value)
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`
      return [Buffer.from(head), bytes, Buffer.from("\r\n")]
    })
    return {
      contentType: `multipart/form-data; boundary=${boundary}`,
      body: Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)])
    }
  })
