import { isFinal } from "../domain/Problem.ts"

/** Hop-by-hop headers (RFC 9110, section 7.6.1), which are relayed in neither direction. */
const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings"
]

/** Headers of a client that no vendor receives: credentials, cookies, its origin, headers for this service. */
const fromClient = new Set([
  ...hopByHop,
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "x-goog-user-project",
  "openai-organization",
  "openai-project",
  "cookie",
  "host",
  "content-length",
  "expect",
  // The gateway must be able to read the response, because its usage figures determine the charge
  "accept-encoding",
  "x-goog-fieldmask",
  "traceparent",
  "tracestate",
  "baggage",
  "b3",
  "idempotency-key",
  "origin",
  "referer",
  "forwarded",
  "via",
  "x-real-ip",
  "true-client-ip"
])

const prefixesFromClient = ["x-forwarded-", "x-b3-", "sec-", "cf-", "proxy-", "x-amz-", "x-envoy-"]

/** Upstream headers that no client receives: cookies, addresses, the owner of the account. */
const fromUpstream = new Set([
  ...hopByHop,
  "set-cookie",
  "set-cookie2",
  "content-length",
  "date",
  "server",
  "alt-svc",
  "strict-transport-security",
  "location",
  "content-location",
  "link",
  "refresh",
  "www-authenticate",
  "report-to",
  "reporting-endpoints",
  "nel",
  "via",
  "openai-organization",
  "openai-project",
  "anthropic-organization-id",
  "traceparent",
  "tracestate"
])

type HeaderValues = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const textOf = (value: string | ReadonlyArray<string>): string =>
  typeof value === "string" ? value : value.join(", ")

/** The headers named by `Connection`. */
const namedBy = (connection: HeaderValues[string]): ReadonlyArray<string> =>
  // The usual value is already in the list above
  connection === undefined || connection === "keep-alive"
    ? none
    : textOf(connection)
        .split(",")
        .map((name) => name.trim().toLowerCase())
const none: ReadonlyArray<string> = []

/** The most header names that one process caches. */
const namesMax = 1000
const known = new Map<string, boolean>()

/** Cached, because requests have many headers and their names recur. */
const isForVendor = (name: string): boolean => {
  const before = known.get(name)
  if (before !== undefined) return before
  const isRelayed =
    !fromClient.has(name) && !prefixesFromClient.some((prefix) => name.startsWith(prefix))
  if (known.size >= namesMax) known.clear()
  known.set(name, isRelayed)
  return isRelayed
}

/** The headers of a client that go to the vendor: names and values alternate. ADR 0074. */
export const toUpstreamHeaders = (headers: HeaderValues): ReadonlyArray<string> => {
  const relayed: Array<string> = []
  const named = namedBy(headers["connection"])
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined || !isForVendor(name) || named.includes(name)) continue
    relayed.push(name, textOf(value))
  }
  return relayed
}

/** The headers of a vendor that go to the client, including rates and request ids. */
export const toClientHeaders = (headers: HeaderValues): Record<string, string> => {
  const relayed: Record<string, string> = {}
  const named = namedBy(headers["connection"])
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined || fromUpstream.has(name) || named.includes(name)) continue
    relayed[name] = textOf(value)
  }
  return relayed
}

/** The default and the maximum of a vendor's wait. */
const unknownWaitSeconds = 1
const waitSecondsMax = 3600

/**
 * Adds `Retry-After` to 429 and 503, and `x-should-retry: false` to final refusals, unless the vendor has sent them.
 * docs/reference/errors.md#headers-of-errors
 */
export const withRetryAdvice = (
  status: number,
  headers: Record<string, string>
): Record<string, string> => {
  if (status === 429 || status === 503) {
    const seconds = Math.ceil(Number(headers["retry-after-ms"] ?? 0) / 1000)
    headers["retry-after"] ??= String(
      seconds > unknownWaitSeconds ? Math.min(seconds, waitSecondsMax) : unknownWaitSeconds
    )
  }
  if (isFinal(status)) headers["x-should-retry"] ??= "false"
  return headers
}
