/**
 * Paths that lead to the same path of a vendor, in addition to `/v1/models`. docs/reference/passthrough.md#aliases
 */
export const routeAliases: ReadonlyMap<string, string> = new Map([
  ["/v1/chat/completions", "openai"],
  ["/v1/responses", "openai"],
  ["/v1/responses/input_tokens", "openai"],
  ["/v1/embeddings", "openai"],
  ["/v1/audio/speech", "openai"],
  ["/v1/audio/transcriptions", "openai"],
  ["/v1/audio/translations", "openai"],
  ["/v1/moderations", "openai"],
  ["/v1/rerank", "jina"],
  ["/v1/messages", "anthropic"],
  ["/v1/messages/count_tokens", "anthropic"]
])

/** A path that a client with a wrong base URL may mean, and what is wrong. */
export interface MeantPath {
  readonly path: string
  readonly advice: string
}

/** What a request may mean whose path does not exist; the caller knows which of these paths exist. */
export const meantPaths = (path: string): ReadonlyArray<MeantPath> => {
  const [, base, rest = ""] = /^(\/vendors\/[^/]+)(\/.*)$/u.exec(path) ?? []
  if (base !== undefined) {
    const withoutFirst = rest.replace(/^\/v\d\w*(?=\/v\d)/u, "")
    return [endingIn(base, withoutFirst), endingIn(`${base}/v1`, rest)]
  }
  const google = endingIn("/vendors/google", path)
  return path.startsWith("/v1/")
    ? [{ path: path.slice("/v1".length), advice: "the base URL must not end in /v1" }, google]
    : [endingIn("/v1", path), google]
}

const endingIn = (base: string, rest: string): MeantPath => ({
  path: `${base}${rest}`,
  advice: `the base URL must end in ${base}`
})
