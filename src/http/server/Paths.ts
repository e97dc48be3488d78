/** How the router compares: a front proxy's rule for a path must hold for all that reaches its route. */
export const exactPaths = {
  caseSensitive: true,
  ignoreDuplicateSlashes: false,
  ignoreTrailingSlash: false
}

/** Of `BASE_URL`, without a slash at its end: a proxy may serve the gateway below a path of its own. */
export const basePathOf = (baseUrl: string): string =>
  new URL(baseUrl).pathname.replace(/\/+$/u, "").replaceAll(/[^\w/.~%-]/gu, encodeURIComponent)

/** Task paths also start with `/vendors/`. */
const task = /^\/vendors\/[^/]+\/v1\/[^/]+\/(?:generation|edit|responses\/[^/]+)(?:\/|$)/u

export const isTaskPath = (path: string): boolean => task.test(path)

const response = /^\/vendors\/openai\/v1\/responses\/./u

/** Of one response, which ran in the background as a task. docs/reference/background.md */
export const isResponsePath = (path: string): boolean => response.test(path)

const taskShape = /^\/v1\/(?:(?:images|videos)(?:[/?]|$)|responses\/)/u

/** In OpenAI's shape, and run as a task by any vendor's model. docs/reference/shapes.md */
export const isTaskShape = (path: string): boolean => taskShape.test(path)

/** What is behind it goes to the passthrough, which decodes it. */
const passthroughTail = /^\/(?:vendors\/[\w.-]+|v1\/models)\//u

/** Encoded letters, digits, `-`, `.`, `_` and `~`: RFC 3986, section 6.2.2.2. */
const encodedUnreserved = /%(?:[46][1-9a-f]|[57][0-9a]|3\d|2[de]|5f|7e)/giu

/** `;` and `#`, at which the router ends a path; empty segments. */
const normalized = /[;#]|\/\/|.\/$/u

/** A page of the console with a slash at its end, which the console redirects. */
export const isConsoleFolder = (path: string): boolean =>
  path.startsWith("/console/") && path.endsWith("/")

/**
 * Refuses a path that the router would read as another one.
 * docs/reference/http.md#paths
 */
export const isExactPath = (path: string): boolean => {
  if (normalized.test(isConsoleFolder(path) ? path.slice(0, -1) : path)) return false
  if (!path.includes("%")) return true
  const decoded = path.replaceAll(encodedUnreserved, decodeURIComponent)
  return decoded === path || (passthroughTail.test(path) && !isTaskPath(decoded))
}
