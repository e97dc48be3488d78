import { Effect, Schema } from "effect"
import { upstreamInput } from "../catalog/UpstreamInput.ts"
import { bodyFields } from "./BodyFields.ts"
import { dataUri, mediaTexts } from "./MediaTexts.ts"
import type { ResultItem, SubmitRequest } from "./VendorClient.ts"

const fieldsOf = bodyFields(Schema.Record(Schema.String, Schema.Unknown))

/** The body with its media as data URIs and its fields renamed by the catalog. */
export const flatInput = Effect.fnUntraced(function* (request: SubmitRequest) {
  const fields = yield* fieldsOf(request)
  const at = yield* mediaTexts(request, dataUri)
  const withMedia = Object.entries(fields).map(([field, value]): [string, unknown] => [
    field,
    Array.isArray(value)
      ? value.map((item: unknown, index) => at(`#/${field}/${index}`) ?? item)
      : (at(`#/${field}`) ?? value)
  ])
  return upstreamInput(Object.fromEntries(withMedia), request.input)
})

const mimes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  mp4: "video/mp4",
  webm: "video/webm",
  mp3: "audio/mpeg",
  wav: "audio/wav"
}

const mimeOf = (url: string): string | undefined =>
  mimes[/\.([a-z0-9]+)$/iu.exec(URL.parse(url)?.pathname ?? "")?.[1]?.toLowerCase() ?? ""]

const depthMax = 4

const urlItem = (url: string, mime: string, isShortLived: boolean): ResultItem => ({
  _tag: "Url",
  url,
  mime,
  needsAuth: false,
  isShortLived
})

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The media in an output whose shape depends on the model: URLs and `{url, content_type}` objects, in
 * order. Other texts are ignored.
 */
export const mediaIn = (
  output: unknown,
  isShortLived: boolean,
  depth = 0
): ReadonlyArray<ResultItem> => {
  if (depth > depthMax) return []
  if (typeof output === "string") {
    return /^https?:\/\//u.test(output)
      ? [urlItem(output, mimeOf(output) ?? "application/octet-stream", isShortLived)]
      : []
  }
  if (Array.isArray(output)) {
    return output.flatMap((item: unknown) => mediaIn(item, isShortLived, depth + 1))
  }
  if (!isRecord(output)) return []
  const { content_type: type, url } = output
  if (typeof url === "string" && /^https?:\/\//u.test(url)) {
    const mime = typeof type === "string" ? type : (mimeOf(url) ?? "application/octet-stream")
    return [urlItem(url, mime, isShortLived)]
  }
  return Object.values(output).flatMap((value) => mediaIn(value, isShortLived, depth + 1))
}
