import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import ipaddr from "ipaddr.js"
import { AppConfig } from "../../config/Config.ts"
import type { ProxyNetwork } from "../../config/SignInSettings.ts"

type Request = HttpServerRequest.HttpServerRequest

/**
 * The address of a client: of the connection, or, when that is a proxy of `TRUSTED_PROXIES`, the last
 * address of `X-Forwarded-For` that is none. What stands before it the client may have written itself.
 * docs/reference/configuration.md#sign-in
 */
export const makeClientAddress = Effect.map(AppConfig, ({ signIn: { trustedProxies } }) => {
  const parse = (text: string | undefined) =>
    text !== undefined && ipaddr.isValid(text) ? ipaddr.process(text) : undefined
  return ({ headers, remoteAddress }: Request): Option.Option<string> => {
    const forwarded = (headers["x-forwarded-for"] ?? "").split(",").map((it) => it.trim())
    let address = parse(Option.getOrUndefined(remoteAddress))
    for (let at = address; at !== undefined; at = parse(forwarded.pop())) {
      address = at
      if (!trustedProxies.some((network) => isInside(address ?? at, network))) break
    }
    return Option.map(Option.fromUndefinedOr(address), (it) => it.toString())
  }
})

/** An IPv4 address is never inside an IPv6 network, nor the reverse. */
const isInside = (address: ProxyNetwork[0], [network, bits]: ProxyNetwork): boolean =>
  address.kind() === network.kind() && address.match(network, bits)
