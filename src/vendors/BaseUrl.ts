/** The base with its version segment exactly once. docs/reference/configuration.md#vendor-bases */
export const withVersion = (baseUrl: string, version: `/${string}`): string => {
  const base = baseUrl.replace(/\/+$/u, "")
  return /\/v\d+[a-z0-9]*$/u.test(base) ? base : `${base}${version}`
}

/** A key is sent to the origin of its account's base only. */
export const isSameOrigin = (baseUrl: string, url: string): boolean =>
  URL.parse(url)?.origin === new URL(baseUrl).origin
