import { Config, Effect, Option, Schema } from "effect"
import type { Redacted } from "effect"
import ipaddr from "ipaddr.js"
import { addressPattern, foldAddress } from "../domain/EmailAddress.ts"
import type { Network } from "../domain/network/IpAddress.ts"
import { Scope } from "../domain/Scope.ts"
import { isBase, isLoopback } from "./BaseUrl.ts"
import { every, fault, read, readSecret } from "./Setting.ts"
import type { ConfigFault } from "./Setting.ts"

/** The OpenID provider for signing in. docs/reference/configuration.md#sign-in */
export interface OidcSettings {
  readonly issuer: URL
  readonly clientId: string
  /** Absent for a public client. */
  readonly clientSecret: Option.Option<Redacted.Redacted>
  /** Verified e-mail addresses, in lower case, that sign in as the operator. */
  readonly operators: ReadonlyArray<string>
  /** Scopes that every access token has in addition to its own. */
  readonly tokenScopes: ReadonlyArray<Scope>
}

export interface SignInSettings {
  readonly oidc: Option.Option<OidcSettings>
  /** Proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: ReadonlyArray<Network>
}

const text = (name: string, remedy: string) =>
  read(name, Config.option(Config.NonEmptyString(name)), remedy)

const listOf = (value: Option.Option<string>): ReadonlyArray<string> =>
  Option.getOrElse(value, () => "")
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")

const isScope = Schema.is(Scope)
const scopesRemedy = `set some of ${Scope.literals.join(", ")}, separated by commas`

const oidc = Effect.gen(function* () {
  const remedy = "set the issuer's https URL, such as https://accounts.google.com"
  const issuer = yield* read("OIDC_ISSUER", Config.option(Config.URL("OIDC_ISSUER")), remedy)
  const clientId = yield* text("OIDC_CLIENT_ID", "set the id of the client at the issuer")
  const clientSecret = yield* readSecret("OIDC_CLIENT_SECRET", "set the secret of the client")
  const operatorsRemedy = "set e-mail addresses, separated by commas"
  const operators = listOf(yield* text("OIDC_OPERATORS", operatorsRemedy))
  const scopes = listOf(yield* text("OIDC_TOKEN_SCOPES", scopesRemedy))
  if (Option.isNone(issuer)) {
    const lonely =
      Option.isSome(clientId) ||
      Option.isSome(clientSecret) ||
      operators.length > 0 ||
      scopes.length > 0
    return lonely
      ? yield* fault("OIDC_ISSUER", "is required with the other variables OIDC_…", remedy)
      : Option.none()
  }
  const { protocol } = issuer.value
  if (protocol !== "https:" && !(protocol === "http:" && isLoopback(issuer.value))) {
    return yield* fault("OIDC_ISSUER", "is not https", remedy)
  }
  if (!isBase(issuer.value)) {
    return yield* fault("OIDC_ISSUER", "has a query, a fragment or credentials", remedy)
  }
  if (Option.isNone(clientId)) {
    const remedy = "set the id of the client at the issuer"
    return yield* fault("OIDC_CLIENT_ID", "is required with OIDC_ISSUER", remedy)
  }
  const nobody = operators.find((it) => !addressPattern.test(it))
  if (nobody !== undefined) {
    return yield* fault("OIDC_OPERATORS", `"${nobody}" is not an e-mail address`, operatorsRemedy)
  }
  const tokenScopes = yield* Effect.forEach(scopes, (it) =>
    isScope(it)
      ? Effect.succeed(it)
      : fault("OIDC_TOKEN_SCOPES", `"${it}" is not a scope`, scopesRemedy)
  )
  return Option.some({
    issuer: issuer.value,
    clientId: clientId.value,
    clientSecret,
    operators: operators.map(foldAddress),
    tokenScopes
  })
})

const trustedProxies = Effect.gen(function* () {
  const remedy = "set addresses and CIDRs, separated by commas, such as 10.0.0.0/8"
  const entries = listOf(yield* text("TRUSTED_PROXIES", remedy))
  return yield* Effect.forEach(entries, (entry) =>
    Effect.try({
      try: (): Network => {
        const [text = ""] = entry.split("/", 1)
        // Rejects abbreviated addresses such as 10.1 for 10.0.0.1
        if (!text.includes(":") && !ipaddr.IPv4.isValidFourPartDecimal(text)) throw new Error(text)
        if (entry.includes("/")) return ipaddr.parseCIDR(entry)
        const address = ipaddr.parse(entry)
        return [address, address.kind() === "ipv4" ? 32 : 128]
      },
      catch: () => fault("TRUSTED_PROXIES", `"${entry}" is not an address`, remedy)
    })
  )
})

/** Sign-in settings. */
export const signInSettings: Effect.Effect<SignInSettings, ConfigFault> = every({
  oidc,
  trustedProxies
})
