/** A base with its version segment once, however the operator wrote it. Contract 9. */
export const withVersion = (baseUrl: string, version: `/${string}`): string => {
  const base = baseUrl.replace(/\/+$/u, "")
  return /\/v\d+[a-z0-9]*$/u.test(base) ? base : `${base}${version}`
}

/** Keys go to the origin of the account's own base and nowhere else. */
export const isSameOrigin = (baseUrl: string, url: string): boolean =>
  URL.parse(url)?.origin === new URL(baseUrl).origin
