/** The base with its version segment exactly once. docs/reference/configuration.md#vendor-bases */
export const withVersion = (baseUrl: string, version: `/${string}`): string => {
  const base = baseUrl.replace(/\/+$/u, "")
  return /\/v\d+[a-z0-9]*$/u.test(base) ? base : `${base}${version}`
}

/** A key is sent to the origin of its account's base only. */
export const isSameOrigin = (baseUrl: string, url: string): boolean => {
  const origin = originOf(baseUrl)
  // Nothing of a user or a port can follow the slash
  return url.startsWith(`${origin}/`) || URL.parse(url)?.origin === origin
}

/** Of accounts, which are few: every poll asks for each URL of its job. */
const origins = new Map<string, string>()

const originOf = (baseUrl: string): string => {
  const known = origins.get(baseUrl)
  if (known !== undefined) return known
  const { origin } = new URL(baseUrl)
  origins.set(baseUrl, origin)
  return origin
}
