/** The vendor of each alias, beside `/v1/models`. docs/reference/passthrough.md#aliases */
export const aliases: ReadonlyMap<string, string> = new Map([
  ["/v1/chat/completions", "openai"],
  ["/v1/responses", "openai"],
  ["/v1/embeddings", "openai"],
  ["/v1/messages", "anthropic"],
  ["/v1/messages/count_tokens", "anthropic"]
])

export const aliasVendorOf = (path: string): string => aliases.get(path) ?? "openai"

/** The vendor, the path and the query of a passthrough call. */
export interface Target {
  readonly vendor: string
  /** The vendor's path as the client sent it. */
  readonly path: string
  readonly query: string
}

/** Splits the raw request target; nothing is decoded here. */
export const targetOf = (url: string): Target | undefined => {
  const mark = url.indexOf("?")
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? "" : withoutKey(url.slice(mark))
  if (path.startsWith("/v1/")) return { vendor: aliasVendorOf(path), path, query }
  const match = /^\/vendors\/([A-Za-z0-9._-]+)(\/.*)$/u.exec(path)
  return match?.[1] === undefined || match[2] === undefined
    ? undefined
    : { vendor: match[1], path: match[2], query }
}

/** Removes credentials of the client, and encodes characters that a URL must not contain. */
const withoutKey = (query: string): string => {
  const kept = query
    .slice(1)
    .split("&")
    .filter((pair) => !/^(?:key|api_key|access_token)(?:=|$)/iu.test(decodedName(pair)))
    .join("&")
  return kept === "" ? "" : `?${kept.replaceAll(/[^\x21-\x7e]|#/gu, encodeURIComponent)}`
}

const decodedName = (pair: string): string => {
  const name = pair.split("=", 1)[0] ?? ""
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
