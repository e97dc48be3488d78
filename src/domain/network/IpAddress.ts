import ipaddr from "ipaddr.js"

/** A parsed IP address. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6

/** A network: its address and its prefix length in bits. */
export type Network = readonly [Address, number]

/** Parses an IP address as written by resolvers and by the URL parser, with or without brackets. */
export const parseAddress = (text: string): Address | undefined => {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text
  if (bare.includes(":")) return ipaddr.IPv6.isValid(bare) ? ipaddr.IPv6.parse(bare) : undefined
  return ipaddr.IPv4.isValidFourPartDecimal(bare) ? ipaddr.IPv4.parse(bare) : undefined
}

/**
 * The range of an address that is not public unicast, such as `private`; `undefined` for a public one.
 * IPv6 outside 2000::/3, the block that IANA assigns for global unicast, is `reserved`.
 * docs/reference/configuration.md#egress-guard
 */
export const nonPublicRange = (address: Address): string | undefined => {
  const embedded = embeddedIPv4(address)
  if (embedded !== undefined) {
    const inner = nonPublicRange(embedded)
    return inner === undefined
      ? `IPv6 form of ${embedded.toString()}`
      : `IPv6 form of ${embedded.toString()}, ${inner}`
  }
  const range: string = address.range()
  if (range !== "unicast") return range
  return isIPv6(address) && !address.match(globalUnicast, 3) ? "reserved" : undefined
}

/**
 * The IPv4 address embedded in an IPv6 address: mapped, compatible, translated (RFC 6145, NAT64 of RFC 6052 and RFC
 * 8215) or 6to4. Such an IPv6 address reaches the IPv4 host, so the IPv4 address is checked.
 */
export const embeddedIPv4 = (address: Address): ipaddr.IPv4 | undefined => {
  if (!isIPv6(address)) return undefined
  const bytes = address.toByteArray()
  if (address.match(sixToFour, 16)) return new ipaddr.IPv4(bytes.slice(2, 6))
  if (unspecifiedOrLoopback.some((special) => address.match(special, 128))) return undefined
  return inLowBits.some(([network, bits]) => address.match(network, bits))
    ? new ipaddr.IPv4(bytes.slice(12))
    : undefined
}

/** Whether the address is in the network. An IPv4 address is never inside an IPv6 network, nor the reverse. */
export const isInside = (address: Address, [network, bits]: Network): boolean =>
  address.kind() === network.kind() && address.match(network, bits)

const isIPv6 = (address: Address): address is ipaddr.IPv6 => address.kind() === "ipv6"

const globalUnicast = ipaddr.IPv6.parse("2000::")
const sixToFour = ipaddr.IPv6.parse("2002::")
const unspecifiedOrLoopback = [ipaddr.IPv6.parse("::"), ipaddr.IPv6.parse("::1")]

/** Networks whose low 32 bits are an IPv4 address. */
const inLowBits: ReadonlyArray<readonly [ipaddr.IPv6, number]> = [
  [ipaddr.IPv6.parse("::"), 96],
  [ipaddr.IPv6.parse("::ffff:0:0"), 96],
  [ipaddr.IPv6.parse("::ffff:0:0:0"), 96],
  [ipaddr.IPv6.parse("64:ff9b::"), 96],
  [ipaddr.IPv6.parse("64:ff9b:1::"), 48]
]
