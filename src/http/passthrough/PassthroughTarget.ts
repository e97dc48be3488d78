import { meantPaths, routeAliases } from "../../catalog/RouteAliases.ts"
import type { MeantPath } from "../../catalog/RouteAliases.ts"
import type { CallTarget } from "../../passthrough/PassthroughCall.ts"
import type { HeaderValues } from "../server/HeaderText.ts"
import { isBatchPath, isResponsePath, isTaskPath } from "../server/Paths.ts"

/** Vendor paths that tasks serve. docs/reference/shapes.md */
export const taskShapes: ReadonlyArray<string> = [
  "/v1/images/generations",
  "/v1/images/edits",
  "/v1/videos",
  "/v1/responses/{id}",
  "/v1/files",
  "/v1/batches",
  "/v1/messages/batches"
]

const isModelList = (path: string): boolean =>
  path === "/v1/models" || path.startsWith("/v1/models/")

const isShared = (path: string): boolean => routeAliases.has(path) || isModelList(path)

/** Anthropic's clients, which all send their version in a header, get Anthropic's list of models. */
const aliasVendorOf = (path: string, headers: HeaderValues): string =>
  isModelList(path) && headers["anthropic-version"] !== undefined
    ? "anthropic"
    : (routeAliases.get(path) ?? (path.startsWith("/v1/messages/") ? "anthropic" : "openai"))

/** The vendor whose routes a request uses; empty if there is none. */
export const vendorOf = (path: string, headers: HeaderValues): string =>
  path.startsWith("/v1/")
    ? aliasVendorOf(path, headers)
    : (/^\/vendors\/([^/?]+)/u.exec(path)?.[1] ?? "")

/** Where a problem occurs: the path, and the vendor whose clients read the problem. */
export interface Place {
  readonly path: string
  readonly vendor: string
}

export const placeOf = (path: string, headers: HeaderValues): Place => {
  const meant = meantBy(path)?.path ?? path
  const vendor = vendorOf(meant, headers)
  // OpenAI's clients are also used for most vendors of a catalog
  const isOther = isPassthroughPath(meant) && !ownClients.has(vendor)
  return { path, vendor: isOther ? "openai" : vendor }
}

/** The path that a client with a wrong base URL means, with what is wrong. */
export const meantBy = (path: string): MeantPath | undefined =>
  meantPaths(path).find((meant) => isShared(meant.path) || meant.path.startsWith(googlesPaths))

const googlesPaths = "/vendors/google/v1beta/"

const ownClients: ReadonlySet<string> = new Set(["openai", "anthropic", "google"])

/** Whether the path of a request, without its query, belongs to the passthrough. */
export const isPassthroughPath = (path: string): boolean =>
  path.startsWith("/v1/")
    ? isShared(path)
    : path.startsWith("/vendors/") &&
      !isTaskPath(path) &&
      !isResponsePath(path) &&
      !isBatchPath(path)

/** The vendor, the path and the query of a passthrough call. */
export interface Target extends CallTarget {
  /** The key from the query, which has been removed from `query`. */
  readonly key: string | undefined
}

/** Splits the raw request target without decoding it. */
export const targetOf = (url: string, headers: HeaderValues): Target | undefined => {
  const mark = url.indexOf("?")
  const path = mark < 0 ? url : url.slice(0, mark)
  const { key, query } = mark < 0 ? noQuery : splitKey(url.slice(mark))
  if (path.startsWith("/v1/")) {
    return { vendor: aliasVendorOf(path, headers), isShared: true, path, query, key }
  }
  const match = /^\/vendors\/([A-Za-z0-9._-]+)(\/.*)$/u.exec(path)
  return match?.[1] === undefined || match[2] === undefined
    ? undefined
    : { vendor: match[1], isShared: false, path: match[2], query, key }
}

const noQuery = { key: undefined, query: "" }

/** Removes the client's credentials and encodes characters that are not allowed in a URL. */
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
