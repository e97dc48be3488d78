import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import ipaddr from "ipaddr.js"
import { AppConfig } from "../../../config/Config.ts"
import type { ProxyNetwork } from "../../../config/SignInSettings.ts"
import { headerText } from "../HeaderText.ts"
import type { HeaderValues } from "../HeaderText.ts"

type Address = ProxyNetwork[0]

/**
 * The address of a client: that of the connection or, if the connection comes from a proxy in `TRUSTED_PROXIES`, the
 * last address in `X-Forwarded-For` that is not a trusted proxy. The client may have forged earlier addresses.
 * docs/reference/configuration.md#sign-in
 */
const addressBehind =
  (proxies: ReadonlyArray<ProxyNetwork>) =>
  (headers: HeaderValues, remote: string | undefined): Address | undefined => {
    let address = parse(remote)
    if (proxies.length === 0) return address
    const forwarded = (headerText(headers, "x-forwarded-for") ?? "").split(",")
    for (let at = address; at !== undefined; at = parse(forwarded.pop()?.trim())) {
      address = at
      if (!proxies.some((network) => isInside(at, network))) break
    }
    return address
  }

const parse = (text: string | undefined): Address | undefined =>
  text !== undefined && ipaddr.isValid(text) ? ipaddr.process(text) : undefined

/** Whether the address is in the network. IPv4 and IPv6 never match each other. */
const isInside = (address: Address, [network, bits]: ProxyNetwork): boolean =>
  address.kind() === network.kind() && address.match(network, bits)

export const makeClientAddress = Effect.map(AppConfig, ({ signIn: { trustedProxies } }) => {
  const addressOf = addressBehind(trustedProxies)
  return ({ headers, remoteAddress }: HttpServerRequest.HttpServerRequest): Option.Option<string> =>
    Option.map(
      Option.fromUndefinedOr(addressOf(headers, Option.getOrUndefined(remoteAddress))),
      (address) => address.toString()
    )
})

/** The address or, for IPv6, its /64, which belongs to one subscriber. All clients without an address count as one. */
export const makeNetworkOf = Effect.map(AppConfig, ({ signIn: { trustedProxies } }) => {
  const addressOf = addressBehind(trustedProxies)
  return (headers: HeaderValues, remote: string | undefined): string => {
    const address = addressOf(headers, remote)
    if (address === undefined) return ""
    return address instanceof ipaddr.IPv6
      ? `${address.parts
          .slice(0, 4)
          .map((part) => part.toString(16))
          .join(":")}::/64`
      : address.toString()
  }
})
