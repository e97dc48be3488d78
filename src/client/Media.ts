import type { Media } from "./schema.ts"

const isBytes = (value: unknown): value is Exclude<Media, string> =>
  value instanceof Blob ||
  value instanceof Uint8Array ||
  value instanceof ArrayBuffer ||
  value instanceof ReadableStream

/** A multiple of three bytes, so that the texts of the slices make one text. */
const sliceBytes = 3 * 0x2000

/** The gateway judges media by their bytes alone, so that no type is declared. */
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

/** The JSON text of a body, with Base64 in place of bytes. Streams are read once, whatever is repeated later. */
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
 * A file of the disk as a medium, on Node 22, Deno and Bun: `images: [await fileFrom("cat.png")]`. A browser
 * has a `File` already.
 */
export const fileFrom = async (path: string): Promise<Blob> => {
  // No import, which a bundler for browsers would not resolve
  const files = globalThis.process?.getBuiltinModule?.("node:fs/promises")
  if (files === undefined) throw new TypeError("This runtime has no files; give a Blob")
  return new Blob([await files.readFile(path)])
}
