import { Result, Schema } from "effect"
import { allowsAddress, canonicalHost } from "../domain/network/EgressAllow.ts"
import type { EgressAllow } from "../domain/network/EgressAllow.ts"
import { nonPublicRange, parseAddress } from "../domain/network/IpAddress.ts"

/** The egress guard refused this URL or host. For a webhook URL, code 2011. */
export class EgressRefused extends Schema.TaggedError<EgressRefused>()("EgressRefused", {
  /** The host without credentials; empty if the text has no host. */
  host: Schema.String,
  /** For clients, the end of a sentence that begins with "the URL". */
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
 * Checks a URL without DNS. It must parse and have an allowed scheme and no credentials, and its host must be neither a
 * local name nor a non-public address. The URL parser normalizes every notation of an IPv4 address (decimal, octal,
 * hexadecimal, short) to the dotted one, which is checked here and used to connect.
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

/**
 * Checks a host without DNS: refuses local names and non-public addresses. Other names are checked when they are
 * resolved.
 */
export const checkHost = (
  allow: EgressAllow,
  hostname: string
): Result.Result<void, EgressRefused> => {
  const host = canonicalHost(hostname)
  if (host === "") return refuse(hostname, "has no host")
  if (allow.hosts.has(host)) return Result.void
  if (parseAddress(host) !== undefined) return checkAddresses(allow, host, [host])
  // If a loopback address is allowed, the name passes here, and its addresses are checked later
  if ((host === "localhost" || host.endsWith(".localhost")) && !allowsLoopback(allow)) {
    return refuse(host, `points to ${host}, which is this machine`)
  }
  return Result.void
}

/** Checks all addresses of a name. A single non-public address refuses the name. */
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

/** Whether none of a name's addresses may be connected to. */
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
