/** How the router compares paths. A front proxy's rule for a path must cover every request that reaches its route. */
export const exactPaths = {
  caseSensitive: true,
  ignoreDuplicateSlashes: false,
  ignoreTrailingSlash: false,
  // By default the router has no route for a segment of more than 100 characters, but names of models have up to 128
  maxParamLength: Infinity
}

/** The path of `BASE_URL` without a trailing slash, because a proxy may serve the gateway under a path prefix. */
export const basePathOf = (baseUrl: string): string =>
  new URL(baseUrl).pathname.replace(/\/+$/u, "").replaceAll(/[^\w/.~%-]/gu, encodeURIComponent)

/** Task paths also start with `/vendors/`. A query may follow. */
const task =
  /^\/vendors\/[^/]+\/v1\/[^/]+\/(?:generation|edit|(?:responses|batches)\/[^/]+)(?:[/?]|$)/u

export const isTaskPath = (path: string): boolean => task.test(path)

const response = /^\/vendors\/openai\/v1\/responses\/(?!input_tokens$)./u

/** Whether this is the path of a background response, which runs as a task. docs/reference/background.md */
export const isResponsePath = (path: string): boolean => response.test(path)

const vendorBatch =
  /^\/vendors\/(?:openai\/v1\/(?:files|batches)|anthropic\/v1\/messages\/batches)(?:\/|$)/u

/**
 * Whether this is a path of files or batches below a vendor, which the gateway serves itself.
 * docs/reference/vendor-batches.md
 */
export const isBatchPath = (path: string): boolean => vendorBatch.test(path)

/** Whether the body is stored or read as it arrives, so that its length does not matter. */
export const isStreamedUpload = (path: string): boolean =>
  /^(?:\/vendors\/(?:openai|anthropic))?\/v1\/(?:files|messages\/batches)$/u.test(path)

const taskShape = /^\/v1\/(?:(?:images|videos)(?:[/?]|$)|responses\/(?!input_tokens(?:\?|$)))/u

/** Whether requests to this path in OpenAI's format run as tasks, with any vendor's model. docs/reference/shapes.md */
export const isTaskShape = (path: string): boolean => taskShape.test(path)

const ofExistingTask =
  /^(?:\/vendors\/(?:openai|anthropic))?\/v1\/(?:(?:responses|(?:messages\/)?batches)\/[^/]+\/cancel|videos\/[^/]+\/remix)(?:\?|$)/u

/** Whether a POST to this path creates nothing: the cancel of a response or a batch, or the remix of a video. */
export const isOfExistingTask = (path: string): boolean => ofExistingTask.test(path)

/** Paths whose rest is passed through undecoded. */
const passthroughTail = /^\/(?:vendors\/[\w.-]+|v1\/models)\//u

/** Percent-encoded letters, digits, `-`, `.`, `_` and `~` (RFC 3986, section 6.2.2.2). */
const encodedUnreserved = /%(?:[46][1-9a-f]|[57][0-9a]|3\d|2[de]|5f|7e)/giu

/** Matches `;` and `#`, at which the router would end the path, empty segments, and a trailing slash. */
const normalized = /[;#]|\/\/|.\/$/u

/** A console page with a trailing slash, which is redirected. */
export const isConsoleFolder = (path: string): boolean =>
  path.startsWith("/console/") && path.endsWith("/")

/** Whether the router reads the path exactly as written. Others are refused. docs/reference/http.md#paths */
export const isExactPath = (path: string): boolean => {
  if (normalized.test(isConsoleFolder(path) ? path.slice(0, -1) : path)) return false
  if (!path.includes("%")) return true
  const decoded = path.replaceAll(encodedUnreserved, decodeURIComponent)
  return decoded === path || (passthroughTail.test(path) && !isTaskPath(decoded))
}
