import { Result, Schema } from "effect"
import { nonPublicRange, parseAddress } from "./EgressAddress.ts"
import { allowsAddress, canonicalHost } from "./EgressAllow.ts"
import type { EgressAllow } from "./EgressAllow.ts"

/** The service will not connect there. Contract 4, code 2011; contract 5 and 8. */
export class EgressRefused extends Schema.TaggedError<EgressRefused>()("EgressRefused", {
  /** The host, or the whole text when it has none. Never credentials. */
  host: Schema.String,
  /** A phrase for people that ends the sentence "the URL …". */
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

type Scheme = "https" | "http"

export interface CheckUrlOptions {
  /** Webhooks take `https` alone; media inputs may take `http` too. Contract 5. */
  readonly schemes: ReadonlyArray<Scheme>
}

/**
 * What can be said of a URL without asking the DNS: it parses, has an admitted scheme, no
 * credentials, and its host is neither a local name nor an address that is not public. The URL parser
 * has by then turned every notation of an IPv4 address (decimal, octal, hexadecimal, short) into the
 * dotted one, which is judged here and connected to later.
 */
export const judgeUrl = (
  allow: EgressAllow,
  text: string,
  options: CheckUrlOptions
): Result.Result<URL, EgressRefused> => {
  const url = URL.parse(text)
  if (url === null) return refuse("", "is not valid")
  const scheme = options.schemes.find((scheme) => url.protocol === `${scheme}:`)
  if (scheme === undefined) {
    return refuse(url.hostname, `must start with ${options.schemes.join(":// or ")}://`)
  }
  if (url.username !== "" || url.password !== "") {
    return refuse(url.hostname, "must not carry a user name or password")
  }
  return Result.map(judgeHost(allow, url.hostname), () => url)
}

/** A URL's host without DNS: local names and addresses are judged, other names pass until they resolve. */
export const judgeHost = (
  allow: EgressAllow,
  hostname: string
): Result.Result<void, EgressRefused> => {
  const host = canonicalHost(hostname)
  if (host === "") return refuse(hostname, "has no host")
  if (allow.hosts.has(host)) return Result.void
  if (parseAddress(host) !== undefined) return judgeAddresses(allow, host, [host])
  // With a loopback address allowed the name may pass here, and is judged by what it resolves to.
  if ((host === "localhost" || host.endsWith(".localhost")) && !allowsLoopback(allow)) {
    return refuse(host, `points to ${host}, which is this machine`)
  }
  return Result.void
}

/** Everything a name resolved to: one address that is not public refuses the whole answer. */
export const judgeAddresses = (
  allow: EgressAllow,
  host: string,
  addresses: ReadonlyArray<string>
): Result.Result<void, EgressRefused> => {
  if (allow.hosts.has(canonicalHost(host))) return Result.void
  for (const text of addresses) {
    const address = parseAddress(text)
    if (address === undefined) return refuse(host, `points to ${text}, which is not an address`)
    const range = nonPublicRange(address)
    if (range !== undefined && !allowsAddress(allow, address)) {
      return refuse(host, `points to ${text}, which is not a public address (${range})`)
    }
  }
  return Result.void
}

const refuse = (host: string, reason: string): Result.Result<never, EgressRefused> =>
  Result.fail(new EgressRefused({ host, reason: `the URL ${reason}` }))

const allowsLoopback = (allow: EgressAllow): boolean =>
  ["127.0.0.1", "::1"].some((text) => {
    const address = parseAddress(text)
    return address !== undefined && allowsAddress(allow, address)
  })
