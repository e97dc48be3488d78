import type { JobProtocol, OwnResults } from "../../catalog/jobs/JobProtocol.ts"
import { select, textAt } from "../../catalog/jobs/JsonPath.ts"
import { mimeOf, sniff } from "../../catalog/media/Formats.ts"
import { documentOf, filesIn } from "../OutputMedia.ts"
import type { ResultItem, UrlItem } from "../VendorClient.ts"
import type { VendorResponse } from "../VendorHttp.ts"

const unknownMime = "application/octet-stream"

/** The nodes of the first path that selects any nodes. */
const nodesAt = (paths: ReadonlyArray<string>, json: unknown): ReadonlyArray<unknown> => {
  for (const path of paths) {
    const nodes = select(path, json).filter((node) => node !== null)
    if (nodes.length > 0) return nodes
  }
  return []
}

const encodedBytes = (node: unknown, mime: string | undefined): ReadonlyArray<ResultItem> => {
  if (typeof node !== "string" || node === "") return []
  const [, declared, text = node] = /^data:([^;,]{0,60})[^,]{0,60},(.*)$/su.exec(node) ?? []
  const bytes = Buffer.from(text, "base64")
  const format = sniff(bytes)
  const known = format === undefined ? undefined : mimeOf(format)
  return bytes.length === 0
    ? []
    : [{ _tag: "Bytes", bytes, mime: known ?? declared ?? mime ?? unknownMime }]
}

const withMime = (item: UrlItem, mime = unknownMime): UrlItem =>
  item.mime === unknownMime ? { ...item, mime } : item

/** The results in the JSON of a response, in order. */
export const itemsIn = (
  { base64, json: documents, mime, shortLived = false, urls, withKey = false }: OwnResults,
  json: unknown
): ReadonlyArray<ResultItem> => {
  const files = nodesAt(urls ?? [], json).flatMap((node) => filesIn(node, shortLived))
  if (files.length > 0) {
    return files.map((item) => withMime({ ...item, needsAuth: withKey }, mime))
  }
  const inline = nodesAt(base64 ?? [], json).flatMap((node) => encodedBytes(node, mime))
  return inline.length > 0 ? inline : nodesAt(documents ?? [], json).map(documentOf)
}

/** The results in the response of a call that returns them at once. */
export const itemsOf = (
  results: OwnResults,
  { body, headers }: VendorResponse,
  json: unknown
): ReadonlyArray<ResultItem> => {
  if (results.whole !== true) return itemsIn(results, json)
  const format = sniff(body)
  const declared = headers["content-type"]?.split(";")[0]?.trim()
  const known = format === undefined ? undefined : mimeOf(format)
  return body.length === 0
    ? []
    : [{ _tag: "Bytes", bytes: body, mime: known ?? results.mime ?? declared ?? unknownMime }]
}

/** The figures for the price of a job, by name. Omits figures that the vendor did not report. */
export const usageIn = (
  usage: NonNullable<JobProtocol["usage"]>,
  json: unknown
): Readonly<Record<string, string | number>> =>
  Object.fromEntries(
    Object.entries(usage).flatMap(([name, path]) => {
      const text = textAt([path], json)
      if (text === undefined) return []
      const number = Number(text)
      return [[name, Number.isFinite(number) && String(number) === text ? number : text]]
    })
  )
