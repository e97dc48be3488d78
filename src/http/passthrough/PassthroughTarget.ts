import type { CallTarget } from "../../passthrough/PassthroughCall.ts"
import { isTaskPath } from "../server/Paths.ts"

/** The vendor of each alias, beside `/v1/models`. docs/reference/passthrough.md#aliases */
export const aliases: ReadonlyMap<string, string> = new Map([
  ["/v1/chat/completions", "openai"],
  ["/v1/responses", "openai"],
  ["/v1/embeddings", "openai"],
  ["/v1/messages", "anthropic"],
  ["/v1/messages/count_tokens", "anthropic"]
])

/** Paths of OpenAI's that are served by tasks. docs/reference/shapes.md */
export const taskShapes: ReadonlyArray<string> = [
  "/v1/images/generations",
  "/v1/images/edits",
  "/v1/videos"
]

export const aliasVendorOf = (path: string): string => aliases.get(path) ?? "openai"

/** The vendor whose routes a path belongs to; none: an empty text. */
export const vendorOf = (path: string): string =>
  path.startsWith("/v1/") ? aliasVendorOf(path) : (/^\/vendors\/([^/?]+)/u.exec(path)?.[1] ?? "")

/** Whether the path of a request, without its query, is one of the passthrough. */
export const isPassthroughPath = (path: string): boolean =>
  path.startsWith("/v1/")
    ? aliases.has(path) || path === "/v1/models" || path.startsWith("/v1/models/")
    : path.startsWith("/vendors/") && !isTaskPath(path)

/** The vendor, the path and the query of a passthrough call. */
export interface Target extends CallTarget {
  /** The key in the query, which the query above does not have. */
  readonly key: string | undefined
}

/** Splits the raw request target; nothing is decoded here. */
export const targetOf = (url: string): Target | undefined => {
  const mark = url.indexOf("?")
  const path = mark < 0 ? url : url.slice(0, mark)
  const { key, query } = mark < 0 ? noQuery : splitKey(url.slice(mark))
  if (path.startsWith("/v1/")) return { vendor: aliasVendorOf(path), path, query, key }
  const match = /^\/vendors\/([A-Za-z0-9._-]+)(\/.*)$/u.exec(path)
  return match?.[1] === undefined || match[2] === undefined
    ? undefined
    : { vendor: match[1], path: match[2], query, key }
}

const noQuery = { key: undefined, query: "" }

/** Takes the credentials of the client out, and encodes characters that a URL must not contain. */
const splitKey = (query: string): Pick<Target, "key" | "query"> => {
  let key: string | undefined
  const kept: Array<string> = []
  for (const pair of query.slice(1).split("&")) {
    const [name = "", ...value] = pair.split("=")
    if (!/^(?:key|api_key|access_token)$/iu.test(decoded(name))) kept.push(pair)
    else if (decoded(name) === "key") key ??= decoded(value.join("="))
  }
  const rest = kept.join("&")
  const sent = rest === "" ? "" : `?${rest.replaceAll(/[^\x21-\x7e]|#/gu, encodeURIComponent)}`
  return { key, query: sent }
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
