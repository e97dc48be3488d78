import { Predicate } from "effect"
import { mimeOfExtension } from "../catalog/media/Formats.ts"
import { at } from "../domain/json/Json.ts"
import type { ResultKind } from "../domain/task/Task.ts"
import type { ResultItem, UrlItem } from "./VendorClient.ts"

const mimeOf = (url: string): string =>
  mimeOfExtension(/\.([a-z0-9]+)$/iu.exec(URL.parse(url)?.pathname ?? "")?.[1] ?? "") ??
  "application/octet-stream"

/** The usual names of result fields, by kind of result. docs/reference/vendors.md#fal-queue */
export const usualFields: { readonly [kind in ResultKind]: ReadonlyArray<string> } = {
  images: ["images", "image"],
  videos: ["video", "videos"],
  audios: ["audio", "audio_file", "audio_url"],
  meshes: ["model_mesh", "model_glb", "model_urls"],
  documents: [],
  responses: [],
  batches: []
}

/** The value at a path of names, such as `result.video`. */
const valueAt = (output: unknown, path: string): unknown => at(output, ...path.split("."))

const itemOf = (file: unknown, isShortLived: boolean): UrlItem | undefined => {
  const { content_type: type, url } = Predicate.isObject(file)
    ? file
    : { content_type: null, url: file }
  if (typeof url !== "string" || !/^https?:\/\//u.test(url)) return undefined
  const mime = typeof type === "string" ? type : mimeOf(url)
  return { _tag: "Url", url, mime, needsAuth: false, isShortLived }
}

/**
 * The files in a value: one file or a list of files, each a URL or `{url, content_type}`. Does not search nested
 * values.
 */
export const filesIn = (value: unknown, isShortLived: boolean): ReadonlyArray<UrlItem> =>
  (Array.isArray(value) ? value : [value]).flatMap((file: unknown) => {
    const item = itemOf(file, isShortLived)
    return item === undefined ? [] : [item]
  })

/**
 * The files of the first named field that has any. Reads no other fields, because outputs may echo the client's text.
 */
export const filesAt = (
  output: unknown,
  fields: ReadonlyArray<string>,
  isShortLived: boolean
): ReadonlyArray<UrlItem> => {
  for (const field of fields) {
    const files = filesIn(valueAt(output, field), isShortLived)
    if (files.length > 0) return files
  }
  return []
}

/** Wraps a value as a document. */
export const documentOf = (value: unknown): ResultItem => ({
  _tag: "Bytes",
  bytes: Buffer.from(JSON.stringify(value)),
  mime: "application/json"
})

/** The values of the named fields, each as a document; without names, the whole output. */
export const documentsAt = (
  output: unknown,
  fields: ReadonlyArray<string>
): ReadonlyArray<ResultItem> =>
  (fields.length === 0 ? [output] : fields.map((field) => valueAt(output, field)))
    .filter((value) => value !== undefined && value !== null)
    .map(documentOf)
