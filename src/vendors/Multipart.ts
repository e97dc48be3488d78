import { Effect } from "effect"
import { randomUUID } from "node:crypto"

export interface FormFile {
  readonly name: string
  readonly mime: string
  readonly bytes: Uint8Array
}

/** Of a field: what stands behind its name, and its bytes. No text of a client is among the names. */
const contentOf = (value: string | FormFile): readonly [string, Uint8Array] =>
  typeof value === "string"
    ? ["", Buffer.from(value)]
    : [`; filename="${value.name}"\r\nContent-Type: ${value.mime}`, value.bytes]

/**
 * A `multipart/form-data` body, its fields in order. `FormData` would make each line break of a text CRLF: a prompt
 * goes as the client wrote it, and the vendor's list, which shows it, is compared with that.
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
