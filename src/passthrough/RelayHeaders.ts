/** Meant for one connection only (RFC 9110, section 7.6.1), never relayed in either direction. */
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

/** What a client sends and no vendor gets: credentials, cookies, who and where it is, our own affairs. */
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
  // The answer has to be readable here: its usage figures are the bill
  "accept-encoding",
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

/** What an upstream sends and no client gets: its cookies, and whose account it is. */
const fromUpstream = new Set([
  ...hopByHop,
  "set-cookie",
  "set-cookie2",
  "content-length",
  "date",
  "server",
  "alt-svc",
  "strict-transport-security",
  "openai-organization",
  "openai-project",
  "anthropic-organization-id",
  "traceparent",
  "tracestate"
])

type HeaderValues = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const textOf = (value: string | ReadonlyArray<string>): string =>
  typeof value === "string" ? value : value.join(", ")

/** The headers that a connection names as its own. */
const namedBy = (connection: HeaderValues[string]): ReadonlyArray<string> =>
  // What most say is in the lists above
  connection === undefined || connection === "keep-alive"
    ? none
    : textOf(connection)
        .split(",")
        .map((name) => name.trim().toLowerCase())
const none: ReadonlyArray<string> = []

/** The names that one process remembers. */
const namesMax = 1000
const known = new Map<string, boolean>()

/** Names recur, and are many in a request. */
const isForVendor = (name: string): boolean => {
  const before = known.get(name)
  if (before !== undefined) return before
  const isRelayed =
    !fromClient.has(name) && !prefixesFromClient.some((prefix) => name.startsWith(prefix))
  if (known.size >= namesMax) known.clear()
  known.set(name, isRelayed)
  return isRelayed
}

/** What goes to the vendor of a client's headers: name and value in turn. ADR 0074. */
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

/** What goes to the client of a vendor's headers: status, rate and request headers among them. */
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
