import { Result, Schema } from "effect"
import ipaddr from "ipaddr.js"
import { embeddedIPv4, isInside, nonPublicRange, parseAddress } from "./IpAddress.ts"
import type { Address, Network } from "./IpAddress.ts"

/** What the egress guard allows in addition to public addresses. */
export interface EgressAllow {
  /** Host names that are allowed regardless of their addresses. Lower case, no trailing dot. */
  readonly hosts: ReadonlySet<string>
  /** Networks whose addresses are allowed for every host name. */
  readonly networks: ReadonlyArray<Network>
}

/** The default: allows nothing but public addresses. */
export const egressAllowNone: EgressAllow = { hosts: new Set(), networks: [] }

/** An entry of `EGRESS_ALLOW` is invalid; `reason` says what to write instead. */
export class EgressAllowInvalid extends Schema.TaggedError<EgressAllowInvalid>()(
  "EgressAllowInvalid",
  { entry: Schema.String, reason: Schema.String }
) {
  override get message(): string {
    return `"${this.entry}" ${this.reason}`
  }
}

/**
 * Reads `EGRESS_ALLOW`: hosts, addresses and CIDRs separated by commas, such as
 * `hooks.internal, 127.0.0.1, 10.0.0.0/8, ::1`. docs/reference/configuration.md#egress-guard
 */
export const parseEgressAllow = (text: string): Result.Result<EgressAllow, EgressAllowInvalid> => {
  const hosts = new Set<string>()
  const networks: Array<Network> = []
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue
    const parsed = parseEntry(entry)
    if (typeof parsed === "string") {
      return Result.fail(new EgressAllowInvalid({ entry, reason: parsed }))
    }
    if ("host" in parsed) hosts.add(parsed.host)
    else networks.push(parsed.network)
  }
  return Result.succeed({ hosts, networks })
}

/** A host name for comparison: lower case, without trailing dots. */
export const canonicalHost = (host: string): string => host.toLowerCase().replace(/\.+$/u, "")

/**
 * Whether the address is in an allowed network. An IPv6 form of an IPv4 address also needs that IPv4 address to be
 * public or allowed, so that allowing a NAT64 prefix does not open the private IPv4 networks.
 */
export const allowsAddress = (allow: EgressAllow, address: Address): boolean => {
  if (!allow.networks.some((network) => isInside(address, network))) return false
  const embedded = embeddedIPv4(address)
  return (
    embedded === undefined ||
    nonPublicRange(embedded) === undefined ||
    allowsAddress(allow, embedded)
  )
}

type Entry = { readonly host: string } | { readonly network: Network }

/** Parses one entry, or returns its fault. */
const parseEntry = (entry: string): Entry | string => {
  if (entry.includes("://")) return "is a URL: write only the host"
  if (entry.includes("*")) return "has a wildcard: list each host, or a CIDR such as 10.0.0.0/8"
  if (entry.includes("/")) return parseCidr(entry)
  const address = parseAddress(entry)
  if (address !== undefined) {
    return { network: [address, address.kind() === "ipv6" ? 128 : 32] }
  }
  if (entry.startsWith("[") || entry.includes(":")) {
    return "is neither a host nor an address: leave out the port"
  }
  const url = URL.parse(`https://${entry}`)
  const host = url === null ? "" : canonicalHost(url.hostname)
  if (url === null || host === "" || url.host !== url.hostname || url.username !== "") {
    return "is not a host name: write a name such as hooks.example.com, or a CIDR"
  }
  if (parseAddress(host) !== undefined) {
    return `is an address in a short form: write ${host}`
  }
  return /[?#\\]/u.test(entry) ? "is not a host name: write only the host" : { host }
}

const parseCidr = (entry: string): Entry | string =>
  ipaddr.IPv4.isValidCIDRFourPartDecimal(entry) || ipaddr.IPv6.isValidCIDR(entry)
    ? { network: ipaddr.parseCIDR(entry) }
    : "is not a CIDR: write an address and the prefix length, such as 10.0.0.0/8 or fd00::/8"
