import type { JobProtocol, OwnResults } from "../../catalog/jobs/JobProtocol.ts"
import { first, select, textAt } from "../../catalog/jobs/JsonPath.ts"
import { mimeOf, sniff } from "../../catalog/media/Formats.ts"
import { documentOf, documentsAt, filesAt, filesIn, usualFields } from "../OutputMedia.ts"
import type { ResultItem, SubmitRequest, UrlItem } from "../VendorClient.ts"
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

/** The files of the first path that selects any. */
const filesOf = (paths: ReadonlyArray<string>, json: unknown, isShortLived: boolean) => {
  for (const path of paths) {
    const files = select(path, json).flatMap((node) => filesIn(node, isShortLived))
    if (files.length > 0) return files
  }
  return []
}

/** The usual fields of a kind of result; of all kinds if it is not known. */
const usualOf = (result: Made["result"]) =>
  result === undefined ? Object.values(usualFields).flat() : usualFields[result]

/** Which results the model of a job makes, and in which fields, if it names any. */
export type Made = Partial<Pick<SubmitRequest, "output" | "result">>

/** The results in the JSON of a response, in order. */
export const itemsIn = (
  { base64, json: documents, mime, shortLived = false, urls, withKey = false }: OwnResults,
  json: unknown,
  { output, result }: Made = {}
): ReadonlyArray<ResultItem> => {
  const ownDocuments = () => nodesAt(documents ?? [], json).map(documentOf)
  // A URL inside a document is not a file
  if (result === "documents") {
    const made = output === undefined ? ownDocuments() : documentsAt(json, output)
    if (made.length > 0 || output !== undefined) return made
  }
  const fields = output ?? (urls === "usual" ? usualOf(result) : undefined)
  const files =
    fields === undefined
      ? filesOf(urls === "usual" || urls === undefined ? [] : urls, json, shortLived)
      : filesAt(json, fields, shortLived)
  if (files.length > 0) {
    return files.map((item) => withMime({ ...item, needsAuth: withKey }, mime))
  }
  const inline = nodesAt(base64 ?? [], json).flatMap((node) => encodedBytes(node, mime))
  if (inline.length > 0) return inline
  const isOther = result !== undefined && result !== "documents"
  return isOther ? [] : ownDocuments()
}

/** Whether the result at an index is flagged. One flag may stand for all. */
export const flagsAt = (path: string | undefined, json: unknown): ((index: number) => boolean) => {
  const flags = path === undefined ? undefined : first(path, json)
  return (index) => (Array.isArray(flags) ? flags[index] === true : flags === true)
}

/** The results in the response of a call that returns them at once. */
export const itemsOf = (
  results: OwnResults,
  { body, headers }: VendorResponse,
  json: unknown,
  made: Made = {}
): ReadonlyArray<ResultItem> => {
  if (results.whole !== true) return itemsIn(results, json, made)
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
