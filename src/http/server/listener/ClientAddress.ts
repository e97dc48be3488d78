import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import ipaddr from "ipaddr.js"
import { AppConfig } from "../../../config/Config.ts"
import { isInside } from "../../../domain/network/IpAddress.ts"
import type { Address, Network } from "../../../domain/network/IpAddress.ts"
import { headerText } from "../HeaderText.ts"
import type { HeaderValues } from "../HeaderText.ts"

/**
 * The address of a client: that of the connection or, if the connection comes from a proxy in `TRUSTED_PROXIES`, the
 * last address in `X-Forwarded-For` that is not a trusted proxy. The client may have forged earlier addresses.
 * docs/reference/configuration.md#sign-in
 */
const addressBehind =
  (proxies: ReadonlyArray<Network>) =>
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
