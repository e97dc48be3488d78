import { Option, Schema } from "effect"
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import { at } from "../../domain/json/Json.ts"

/** A request that a vendor received. */
export interface VendorRequest {
  readonly method: string
  /** The path without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
  /** The parsed body; `undefined` if it is not JSON. */
  readonly json: unknown
  /** The fields of a `multipart/form-data` body, by name. */
  readonly form: ReadonlyMap<string, ReadonlyArray<FormPart>>
}

export interface FormPart {
  /** The bytes of a file as Latin-1. */
  readonly text: string
  /** The name of a file; absent for other fields. */
  readonly fileName?: string
  readonly type?: string
}

/** Reads a request completely. */
export const readRequest = async (request: IncomingMessage): Promise<VendorRequest> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  const bytes = Buffer.concat(chunks)
  const url = new URL(request.url ?? "/", "http://vendor.test")
  const type = request.headers["content-type"] ?? ""
  return {
    method: request.method ?? "GET",
    path: url.pathname,
    query: url.searchParams,
    headers: request.headers,
    bytes,
    json: type.startsWith("application/json") ? parse(bytes.toString()) : undefined,
    form: formOf(type, bytes)
  }
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Lenient, because vendors' clients announce JSON even on requests without a body. */
const parse = (text: string): unknown => Option.getOrUndefined(decode(text))

/** Parses every field. Reads the body as Latin-1, so that no byte of a file changes; texts are UTF-8. */
const formOf = (type: string, bytes: Buffer): ReadonlyMap<string, ReadonlyArray<FormPart>> => {
  const fields = new Map<string, Array<FormPart>>()
  const [, boundary] = /^multipart\/form-data;.*boundary="?([^";]+)/iu.exec(type) ?? []
  if (boundary === undefined) return fields
  for (const piece of bytes.toString("latin1").split(`--${boundary}`).slice(1, -1)) {
    const end = piece.indexOf("\r\n\r\n")
    const head = piece.slice(0, end)
    const content = piece.slice(end + 4, -2)
    const name = /name="([^"]*)"/iu.exec(head)?.[1] ?? ""
    const fileName = /filename="([^"]*)"/iu.exec(head)?.[1]
    const [, contentType] = /^content-type: *(\S+)/imu.exec(head) ?? []
    const text = fileName === undefined ? Buffer.from(content, "latin1").toString() : content
    const part: FormPart = {
      text,
      ...(fileName === undefined ? {} : { fileName }),
      ...(contentType === undefined ? {} : { type: contentType })
    }
    fields.set(name, [...(fields.get(name) ?? []), part])
  }
  return fields
}

/** The text at a path of a JSON value. */
export const textAt = (value: unknown, ...path: ReadonlyArray<string>): string | undefined => {
  const found = at(value, ...path)
  return typeof found === "string" ? found : undefined
}

/** The array at a path of a JSON value; `undefined` if there is no array. */
export const listAt = (
  value: unknown,
  ...path: ReadonlyArray<string>
): ReadonlyArray<unknown> | undefined => {
  const found = at(value, ...path)
  return Array.isArray(found) ? found : undefined
}

/** The number of results that a body orders. Default: one. */
export const countAt = (value: unknown, ...path: ReadonlyArray<string>): number => {
  const found = at(value, ...path)
  return typeof found === "number" ? found : 1
}
