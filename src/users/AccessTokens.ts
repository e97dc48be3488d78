import { Clock, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import * as oauth from "oauth4webapi"
import { AppConfig } from "../config/Config.ts"
import { foldAddress } from "../domain/EmailAddress.ts"
import {
  accessTokenCharactersMax,
  accessTokenIdCharactersMax,
  accessTokenSkewSeconds
} from "../domain/limits/SignInLimits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { Scope } from "../domain/Scope.ts"
import { AccessTokenStore } from "./AccessTokenStore.ts"
import type { TokenOwner } from "./AccessTokenStore.ts"
import type { Principal } from "./ApiKeys.ts"
import { makeIssuerKeys } from "./IssuerKeys.ts"
import type { Issuer } from "./IssuerKeys.ts"
import { Sessions } from "./Sessions.ts"
import { SessionStore } from "./SessionStore.ts"

type Failure = Problem | StoreUnavailable

/** A user who calls with an access token. */
export interface TokenHolder {
  /** The user's console key with the scopes of the token. */
  readonly principal: Principal
  readonly keyHash: Uint8Array
  /** Fails once the token has expired or its user may no longer use it. */
  readonly mayStill: Effect.Effect<void, Failure>
  /** The issuer's identifiers of the user, the OAuth client and the token. */
  readonly subject: string
  readonly clientId: string
  readonly tokenId: string
}

/** Access tokens that `OIDC_ISSUER` issues for one resource of this gateway. */
export interface TokenAccess {
  /** The scopes that a client must request from the issuer. `undefined`: the issuer grants them without a request. */
  readonly asked: ReadonlyArray<Scope> | undefined
  /** The issuer's own identifier. Fails with 5002. */
  readonly issuer: Effect.Effect<string, Problem>
  /** Fails with 1002 (not valid here), 1003 (expired, revoked, user disabled), 1004 (no such user) or 5002. */
  readonly authenticate: (token: string) => Effect.Effect<TokenHolder, Failure>
}

/** Whether the text has the form of a signed JWT, which no API key has. */
export const isAccessToken = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]*$/u.test(token)

/** Verifies OAuth access tokens for `/mcp`; `None` without `OIDC_ISSUER`. docs/reference/mcp.md#oauth, ADR 0308 */
export class AccessTokens extends Context.Service<AccessTokens, Option.Option<TokenAccess>>()(
  "gateway/users/AccessTokens"
) {
  static readonly layer = Layer.effect(
    AccessTokens,
    Effect.gen(function* () {
      const { baseUrl, signIn } = yield* AppConfig
      if (Option.isNone(signIn.oidc)) return Option.none()
      const settings = signIn.oidc.value
      const issuerOf = yield* makeIssuerKeys(settings)
      const standing = yield* makeStanding(settings.operators)
      const resource = mcpResource(baseUrl)

      const authenticate = Effect.fn("AccessTokens.authenticate")(function* (token: string) {
        if (token.length > accessTokenCharactersMax) return yield* tooLong
        const issuer = yield* issuerOf(keyIdOf(token))
        const claims = yield* verify(issuer, resource, token)
        const ids = [claims.sub, claims.jti, claims.client_id]
        if (ids.some(({ length }) => length > accessTokenIdCharactersMax)) return yield* tooLong
        const { apiKeyId, keyHash, userId } = yield* standing(claims)
        return {
          principal: {
            userId,
            apiKeyId,
            scopes: scopesOf(claims.scope, settings.tokenScopes),
            rotation: 0
          },
          keyHash,
          mayStill: Effect.asVoid(standing(claims)),
          subject: claims.sub,
          clientId: claims.client_id,
          tokenId: claims.jti
        }
      })

      return Option.some({
        asked: settings.tokenScopes.length > 0 ? undefined : Scope.literals,
        issuer: Effect.map(issuerOf(undefined), ({ server }) => server.issuer),
        authenticate
      })
    })
  )
}

/** The audience of the tokens (RFC 8707). */
export const mcpResource = (baseUrl: string): string => `${baseUrl}/mcp`

type Claims = oauth.JWTAccessTokenClaims

const isScope = Schema.is(Scope)

const scopesOf = (text = "", more: ReadonlyArray<Scope>): ReadonlyArray<Scope> =>
  [...new Set([...text.split(" "), ...more])].filter(isScope)

const Header = Schema.fromJsonString(Schema.Struct({ kid: Schema.optionalKey(Schema.String) }))
const decodeHeader = Schema.decodeUnknownOption(Header)

/** Read before verification, so it may be forged. It only decides whether the keys are fetched again. */
const keyIdOf = (token: string): string | undefined => {
  const header = Buffer.from(token.slice(0, token.indexOf(".")), "base64url").toString()
  return Option.getOrUndefined(decodeHeader(header))?.kid
}

/**
 * Verifies by RFC 9068: signed by the issuer with an asymmetric algorithm, typed `at+jwt`, for this audience, not
 * expired.
 */
const verify = Effect.fnUntraced(function* (issuer: Issuer, resource: string, token: string) {
  const millis = yield* Clock.currentTimeMillis
  const request = new Request(resource, { headers: { authorization: `Bearer ${token}` } })
  const options: oauth.ValidateJWTAccessTokenOptions = {
    // The cached keys never expire for the library, so it fetches none itself: `IssuerKeys` does
    [oauth.jwksCache]: { jwks: issuer.keys, uat: Number.MAX_SAFE_INTEGER },
    [oauth.clockSkew]: Math.round((millis - Date.now()) / 1000),
    [oauth.clockTolerance]: accessTokenSkewSeconds
  }
  return yield* Effect.tryPromise({
    // Copied, because the library caches keys by object identity
    try: () => oauth.validateJwtAccessToken({ ...issuer.server }, request, resource, options),
    catch: (cause) => (isExpiry(cause) ? expired : invalidFor(issuer, resource))
  })
})

const isExpiry = (cause: unknown): boolean =>
  cause instanceof oauth.OperationProcessingError &&
  cause.code === oauth.JWT_TIMESTAMP_CHECK &&
  Schema.is(Schema.Struct({ claim: Schema.Literal("exp") }))(cause.cause)

/** Omits the cause, because it contains the claims. */
const invalidFor = ({ server }: Issuer, resource: string): Problem =>
  problem(
    1002,
    `This access token is not valid here: expected one of ${server.issuer} for the resource ${resource} (RFC 9068)`
  )

/** The user of a token and the key that it uses, if both may currently be used. */
const makeStanding = Effect.fnUntraced(function* (operators: ReadonlyArray<string>) {
  const store = yield* AccessTokenStore
  const sessions = yield* Sessions
  const { userBySubject } = yield* SessionStore

  const found = Effect.fnUntraced(function* (claims: Claims) {
    const subject = `${claims.iss} ${claims.sub}`
    const owner = yield* store.ownerOf(subject)
    if (Option.isSome(owner)) return owner.value
    const email = verifiedEmail(claims)
    // As for sign-in, an operator's address never belongs to a user
    if (email === undefined || operators.includes(foldAddress(email))) return yield* nobody
    yield* userBySubject(subject, email)
    return yield* Effect.mapError(Effect.fromOption(yield* store.ownerOf(subject)), () => nobody)
  })

  /** The owner with a key, which is created at first use. */
  const keyOf = Effect.fnUntraced(function* (owner: TokenOwner, claims: Claims) {
    if (owner.keyHash !== null) return owner
    yield* sessions.keyHashOf({ apiKeyId: null, userId: owner.userId })
    return yield* found(claims)
  })

  return Effect.fnUntraced(function* (claims: Claims) {
    const seconds = DateTime.toEpochMillis(yield* DateTime.now) / 1000
    if (claims.exp <= seconds - accessTokenSkewSeconds) return yield* expired
    const owner = yield* found(claims)
    const fault = faultOf(owner, claims)
    if (fault !== undefined) return yield* fault
    const { apiKeyId, keyHash, userId } = yield* keyOf(owner, claims)
    return apiKeyId === null || keyHash === null ? yield* revoked : { apiKeyId, keyHash, userId }
  })
})

const verifiedEmail = ({ email, email_verified }: Claims): string | undefined =>
  typeof email === "string" && email_verified === true ? email : undefined

const faultOf = ({ disabledAt, revokedAt }: TokenOwner, { iat }: Claims): Problem | undefined => {
  if (disabledAt !== null) return problem(1003, "The user of this access token is disabled")
  return revokedAt !== null && DateTime.toEpochMillis(revokedAt) >= iat * 1000 ? revoked : undefined
}

const tooLong = problem(1002, "This access token, or an id in it, is too long")
const expired = problem(1003, "This access token has expired")
const revoked = problem(
  1003,
  "This access token is older than the latest revocation of its user's console key"
)
const nobody = problem(
  1004,
  "There is no user for this identity: sign in to the console once, or ask the operator"
)
