/**
 * The path below which the gateway is served, from the address of this script: a proxy may serve it below a
 * path of its own.
 */
export const basePath = new URL(import.meta.url).pathname.replace(/\/console\/assets\/[^/]+$/u, "")

const artifact = /\/artifacts\/art_[0-9a-f]+$/u

/** Of an artifact its path, so that it is shown whatever host name the gateway gives itself. */
export const mediaPath = (url: string): string => {
  const parsed = URL.parse(url)
  return parsed !== null && artifact.test(parsed.pathname) ? parsed.pathname + parsed.search : url
}

/** Whether the page may show it: of this gateway, or within the text itself. */
export const isShown = (url: string): boolean =>
  url.startsWith("data:image/") || mediaPath(url).startsWith("/")
