/** The path under which the gateway is served, derived from this script's URL, because a proxy may add a prefix. */
export const basePath = new URL(import.meta.url).pathname.replace(/\/console\/assets\/[^/]+$/u, "")

const artifact = /\/artifacts\/art_[0-9a-f]+$/u

/** The path of an artifact, so that it loads even if the gateway's own host name differs from the page's. */
export const mediaPath = (url: string): string => {
  const parsed = URL.parse(url)
  return parsed !== null && artifact.test(parsed.pathname) ? parsed.pathname + parsed.search : url
}

/** Whether the page may load this URL: it belongs to this gateway, or is a data URI. */
export const isShown = (url: string): boolean =>
  url.startsWith("data:image/") || mediaPath(url).startsWith("/")
