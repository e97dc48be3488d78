import { DateTime, Duration, Effect, Option, Redacted, Schema } from "effect"
import * as client from "openid-client"
import type { OidcSettings } from "../config/SignInSettings.ts"
import { problem } from "../domain/Problem.ts"

/** The provider could not be reached or did not confirm; the client sees our own message. */
export class ProviderFault extends Schema.TaggedError<ProviderFault>()("ProviderFault", {
  cause: Schema.Defect()
}) {}

export const unreachable = problem(5002, "The sign-in provider cannot be reached")

/** Read from the issuer at first use and every hour, because its endpoints may change. */
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
        // Only a loopback address may be http: `SignInSettings`
        execute:
          issuer.protocol === "http:"
            ? [client.enableNonRepudiationChecks, client.allowInsecureRequests]
            : [client.enableNonRepudiationChecks]
      }
    )
  /** Anyone may start a sign-in, so concurrent ones share one response. */
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

/** The longest time for one request to the provider. */
export const discoverySeconds = 10
const discoveryMillis = Duration.toMillis("1 hour")
