import { Result, Schema } from "effect"
import { nonPublicRange, parseAddress } from "./EgressAddress.ts"
import { allowsAddress, canonicalHost } from "./EgressAllow.ts"
import type { EgressAllow } from "./EgressAllow.ts"

/** The egress guard refuses this URL or host; for a webhook URL, code 2011. */
export class EgressRefused extends Schema.TaggedError<EgressRefused>()("EgressRefused", {
  /** The host, or empty if the text has none. Without credentials. */
  host: Schema.String,
  /** A sentence for clients: "the URL …". */
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

type Scheme = "https" | "http"

export interface CheckUrlOptions {
  /** `https` only for webhooks; media may also be `http`. */
  readonly schemes: ReadonlyArray<Scheme>
}

/**
 * Checks a URL without DNS: it parses, has an allowed scheme and no credentials, and its host is neither
 * a local name nor a non-public address. The URL parser turns every notation of an IPv4 address
 * (decimal, octal, hexadecimal, short) into the dotted one, which is checked here and connected to later.
 */
export const checkUrlText = (
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
    return refuse(url.hostname, "must not contain a user name or password")
  }
  return Result.flatMap(checkHost(allow, url.hostname), () =>
    wellFormed.test(text) && url.port !== "0"
      ? Result.succeed(url)
      : refuse(url.hostname, "is not of the form scheme://host:port/path")
  )
}

/** A form that all parsers read alike: no backslash, no empty host, user or port, no missing slash. */
const wellFormed = /^[a-z]+:\/\/(?!:)[^\\/?#@]+(?<!:)(?:\/[^\\?#]*)?(?:[?#]|$)/iu

/** Checks a host without DNS: local names and addresses; other names pass until they are resolved. */
export const checkHost = (
  allow: EgressAllow,
  hostname: string
): Result.Result<void, EgressRefused> => {
  const host = canonicalHost(hostname)
  if (host === "") return refuse(hostname, "has no host")
  if (allow.hosts.has(host)) return Result.void
  if (parseAddress(host) !== undefined) return checkAddresses(allow, host, [host])
  // With a loopback address allowed the name passes here, and its addresses are checked later.
  if ((host === "localhost" || host.endsWith(".localhost")) && !allowsLoopback(allow)) {
    return refuse(host, `points to ${host}, which is this machine`)
  }
  return Result.void
}

/** Checks all addresses of a name: a single non-public address refuses them all. */
export const checkAddresses = (
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

/** No address of a name may be connected to. */
export const refusesAll = (
  allow: EgressAllow,
  host: string,
  addresses: ReadonlyArray<string>
): boolean =>
  addresses.length > 0 &&
  addresses.every((address) => Result.isFailure(checkAddresses(allow, host, [address])))

const refuse = (host: string, reason: string): Result.Result<never, EgressRefused> =>
  Result.fail(new EgressRefused({ host, reason: `the URL ${reason}` }))

const allowsLoopback = (allow: EgressAllow): boolean =>
  ["127.0.0.1", "::1"].some((text) => {
    const address = parseAddress(text)
    return address !== undefined && allowsAddress(allow, address)
  })
