/** The base with its version segment exactly once. docs/reference/configuration.md#vendor-bases */
export const withVersion = (baseUrl: string, version: `/${string}`): string => {
  const base = baseUrl.replace(/\/+$/u, "")
  return /\/v\d+[a-z0-9]*$/u.test(base) ? base : `${base}${version}`
}

/** A key is sent to the origin of its account's base only. */
export const isSameOrigin = (baseUrl: string, url: string): boolean => {
  const origin = originOf(baseUrl)
  // After the slash there can be no user or port
  return url.startsWith(`${origin}/`) || URL.parse(url)?.origin === origin
}

/** Cached, because every poll checks each URL of its job and accounts are few. */
const origins = new Map<string, string>()

const originOf = (baseUrl: string): string => {
  const known = origins.get(baseUrl)
  if (known !== undefined) return known
  const { origin } = new URL(baseUrl)
  origins.set(baseUrl, origin)
  return origin
}
