import type { Media } from "./schema.ts"

const isBytes = (value: unknown): value is Exclude<Media, string> =>
  value instanceof Blob ||
  value instanceof Uint8Array ||
  value instanceof ArrayBuffer ||
  value instanceof ReadableStream

/** A multiple of three bytes, so that the Base64 of the slices can be concatenated. */
const sliceBytes = 3 * 0x2000

/** Declares no media type, because the gateway detects it from the bytes. */
const base64Of = async (media: Exclude<Media, string>): Promise<string> => {
  const bytes =
    media instanceof Uint8Array
      ? media
      : new Uint8Array(
          media instanceof ArrayBuffer ? media : await new Response(media).arrayBuffer()
        )
  const texts: Array<string> = []
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    texts.push(btoa(String.fromCharCode(...bytes.subarray(at, at + sliceBytes))))
  }
  return texts.join("")
}

/** The JSON of a body, with bytes as Base64. Streams are read only once, even if the request is retried. */
export const encodeBody = async (body: unknown): Promise<string> => {
  const encoded = async (value: unknown): Promise<unknown> => {
    if (isBytes(value)) return base64Of(value)
    if (Array.isArray(value)) return Promise.all(value.map(encoded))
    if (typeof value !== "object" || value === null) return value
    const members = Object.entries(value).map(async ([name, one]) => [name, await encoded(one)])
    return Object.fromEntries(await Promise.all(members))
  }
  return JSON.stringify(await encoded(body))
}

/**
 * Reads a file on disk as a medium, on Node 22, Deno and Bun: `images: [await fileFrom("cat.png")]`. Browsers already
 * have `File`.
 */
export const fileFrom = async (path: string): Promise<Blob> => {
  // Not an import, because a bundler for browsers could not resolve it
  const files = globalThis.process?.getBuiltinModule?.("node:fs/promises")
  if (files === undefined) throw new TypeError("This runtime cannot read files; pass a Blob")
  return new Blob([await files.readFile(path)])
}
