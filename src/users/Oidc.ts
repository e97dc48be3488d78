import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import * as client from "openid-client"
import { AppConfig } from "../config/Config.ts"
import { oidcTransactionMinutes } from "../domain/limits/SignInLimits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { discovered, ProviderFault } from "./OidcDiscovery.ts"

/** The identity that the provider confirmed. */
export interface Identity {
  /** Issuer and subject. Unlike an e-mail address, they are never reassigned to another person. */
  readonly subject: string
  /** Verified by the provider. */
  readonly email: string
}

/** What the callback is checked against; stored encrypted in a cookie of the browser. */
const Transaction = Schema.Struct({
  state: Schema.String,
  nonce: Schema.String,
  verifier: Schema.String,
  expiresAt: Schema.Finite
})
const encode = Schema.encodeSync(Schema.fromJsonString(Transaction))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Transaction))

export interface Begun {
  /** Where to redirect the browser. */
  readonly url: string
  /** Encrypted; stored in a cookie of the browser. */
  readonly transaction: string
}

/** Sign-in with an OpenID provider: authorization code flow with PKCE, state and nonce. ADR 0174. */
export class Oidc extends Context.Service<
  Oidc,
  {
    /** Fails with 2006 without `OIDC_ISSUER`, and with 5002 if the provider cannot be reached. */
    readonly begin: Effect.Effect<Begun, Problem>
    /** `query` is the callback's query string. Fails with 1005. */
    readonly finish: (
      query: string,
      transaction: string | undefined
    ) => Effect.Effect<Identity, Problem>
  }
>()("gateway/users/Oidc") {
  static readonly layer = Layer.effect(
    Oidc,
    Effect.gen(function* () {
      const { baseUrl, signIn } = yield* AppConfig
      const secrets = yield* Secrets
      if (Option.isNone(signIn.oidc)) return Oidc.of({ begin: off, finish: () => off })
      const provider = discovered(signIn.oidc.value)
      const redirect_uri = `${baseUrl}/manage/v1/session/oidc/callback`

      const begin = Effect.gen(function* () {
        const configuration = yield* provider
        const verifier = client.randomPKCECodeVerifier()
        const [state, nonce] = [client.randomState(), client.randomNonce()]
        const code_challenge = yield* Effect.promise(() =>
          client.calculatePKCECodeChallenge(verifier)
        )
        const url = client.buildAuthorizationUrl(configuration, {
          redirect_uri,
          scope: "openid email",
          code_challenge,
          code_challenge_method: "S256",
          state,
          nonce
        })
        const expiresAt = DateTime.toEpochMillis(yield* DateTime.now) + transactionMillis
        const text = encode({ state, nonce, verifier, expiresAt })
        const transaction = Buffer.from(secrets.encrypt(text)).toString("base64url")
        return { url: url.href, transaction }
      })

      const open = (transaction: string | undefined) =>
        Effect.gen(function* () {
          const bytes = Buffer.from(transaction ?? "", "base64url")
          const text = yield* Effect.option(secrets.decrypt(bytes))
          const found = Option.flatMap(text, decode)
          const now = DateTime.toEpochMillis(yield* DateTime.now)
          return Option.isSome(found) && found.value.expiresAt > now
            ? found.value
            : yield* notBegunHere
        })

      const finish = Effect.fn("Oidc.finish")(function* (
        query: string,
        transaction: string | undefined
      ) {
        const expected = yield* open(transaction)
        const configuration = yield* provider
        // Uses the configured address, because a proxy or a client may have sent another Host
        const url = new URL(`${redirect_uri}?${query}`)
        const claims = yield* Effect.tryPromise({
          try: () => identify(configuration, url, expected),
          catch: (cause) => new ProviderFault({ cause })
        }).pipe(
          Effect.tapError((cause) => Effect.logWarning("Refused a sign-in by OIDC", cause)),
          Effect.mapError(() => notConfirmed)
        )
        const { email, email_verified, iss, sub } = claims
        if (typeof email !== "string" || email_verified !== true) return yield* notVerified
        return { subject: `${iss} ${sub}`, email }
      })
      return Oidc.of({ begin, finish })
    })
  )
}

const transactionMillis = Duration.toMillis(Duration.minutes(oidcTransactionMinutes))

const off = Effect.fail(problem(2006, "Sign-in by OIDC is not configured"))
const notBegunHere = Effect.fail(
  problem(
    1005,
    "This sign-in was not started in this browser, or was started too long ago: start again"
  )
)
const notConfirmed = problem(1005, "The provider did not confirm the identity")
const notVerified = problem(1005, "The provider has not verified an e-mail address")
/**
 * The claims of the ID token, completed from userinfo if the e-mail address is only there. `enableNonRepudiationChecks`
 * verifies the signature with the published keys; by default openid-client trusts the TLS connection to the token
 * endpoint.
 */
const identify = async (
  configuration: client.Configuration,
  url: URL,
  expected: typeof Transaction.Type
) => {
  const tokens = await client.authorizationCodeGrant(configuration, url, {
    pkceCodeVerifier: expected.verifier,
    expectedState: expected.state,
    expectedNonce: expected.nonce,
    idTokenExpected: true
  })
  const claims = tokens.claims()
  if (claims === undefined) throw new Error("no ID token")
  const { iss, sub } = claims
  if (
    claims["email"] !== undefined ||
    configuration.serverMetadata().userinfo_endpoint === undefined
  ) {
    return { iss, sub, email: claims["email"], email_verified: claims["email_verified"] }
  }
  const info = await client.fetchUserInfo(configuration, tokens.access_token, sub)
  return { iss, sub, email: info.email, email_verified: info.email_verified }
}
