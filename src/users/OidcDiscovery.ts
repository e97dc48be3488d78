import { DateTime, Duration, Effect, Option, Redacted, Schema } from "effect"
import * as client from "openid-client"
import type { OidcSettings } from "../config/SignInSettings.ts"
import { problem } from "../domain/Problem.ts"

/**
 * The provider could not be reached or did not confirm the identity. The client sees only the gateway's own message.
 */
export class ProviderFault extends Schema.TaggedError<ProviderFault>()("ProviderFault", {
  cause: Schema.Defect()
}) {}

export const unreachable = problem(5002, "The sign-in provider cannot be reached")

/** The issuer's metadata, read at first use and again every hour, because its endpoints may change. */
export const discovered = ({ clientId, clientSecret, issuer }: OidcSettings) => {
  let known: { readonly configuration: client.Configuration; readonly until: number } | undefined
  const secret = Option.map(clientSecret, Redacted.value)
  const discover = () =>
    client.discovery(
      issuer,
      clientId,
      Option.getOrUndefined(secret),
      Option.isNone(secret) ? client.None() : undefined,
      {
        timeout: discoverySeconds,
        // Only a loopback issuer may use http; `SignInSettings` enforces this
        execute:
          issuer.protocol === "http:"
            ? [client.enableNonRepudiationChecks, client.allowInsecureRequests]
            : [client.enableNonRepudiationChecks]
      }
    )
  /** Anyone can start a sign-in, so concurrent ones share one request to the issuer. */
  let underWay: Promise<client.Configuration> | undefined
  const discoverOnce = () =>
    (underWay ??= discover().finally(() => {
      underWay = undefined
    }))
  return Effect.gen(function* () {
    const now = DateTime.toEpochMillis(yield* DateTime.now)
    if (known !== undefined && now < known.until) return known.configuration
    const configuration = yield* Effect.tryPromise({
      try: discoverOnce,
      catch: (cause) => new ProviderFault({ cause })
    }).pipe(
      Effect.tapError((cause) => Effect.logWarning("OIDC_ISSUER cannot be reached", cause)),
      Effect.mapError(() => unreachable)
    )
    known = { configuration, until: now + discoveryMillis }
    return configuration
  })
}

/** The timeout of one request to the provider. */
export const discoverySeconds = 10
const discoveryMillis = Duration.toMillis("1 hour")
