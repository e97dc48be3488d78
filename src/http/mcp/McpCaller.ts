import { Effect, Option } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { mcpMetadataPath } from "../../contract/ServiceApi.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import type { Scope } from "../../domain/Scope.ts"
import { AuditLog } from "../../process/audit/AuditLog.ts"
import type { MayStill } from "../../tasks/TaskWatch.ts"
import { AccessTokens, isAccessToken } from "../../users/AccessTokens.ts"
import type { TokenHolder } from "../../users/AccessTokens.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { digestOf } from "../../users/KeyText.ts"
import type { KeyDigest } from "../../users/KeyText.ts"
import { KnownKeys, remember } from "../../users/KnownKeys.ts"
import { RequestQuotas } from "../../users/RequestQuotas.ts"
import { tokenMissing, tokenOf } from "../server/access/ClientKeys.ts"
import { makeClientAddress } from "../server/listener/ClientAddress.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"

/** The caller of a message, with its access token if it has no API key. */
export interface McpCaller {
  readonly principal: Principal
  readonly token: TokenHolder | undefined
  /** Fails once the key or the token has ended. */
  readonly mayStill: MayStill
}

/**
 * Authenticates the caller by API key or access token. If there is an issuer, every 401 tells OAuth clients where to
 * get a token. docs/reference/mcp.md#oauth
 */
export const makeMcpCaller = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const access = yield* AccessTokens
  const challenge = yield* makeChallenge
  const owners = yield* KnownKeys
  const recordUse = yield* makeRecordUse

  const byAccessToken = (authenticate: Authenticate, request: Request, token: string) =>
    Effect.gen(function* () {
      const holder = yield* authenticate(token)
      const { principal } = holder
      yield* recordUse(request, digestOf(token), holder)
      owners.learn(token, principal.userId)
      return { principal, token: holder, mayStill: holder.mayStill } satisfies McpCaller
    })

  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const token = tokenOf(request.headers)
    if (Option.isNone(access)) return yield* byKey(keys, yield* token)
    const isMissing = token === tokenMissing
    const asked: ReadonlyArray<Scope> = access.value.asked === undefined ? [] : ["inference"]
    yield* challenge(401, isMissing ? undefined : "invalid_token", asked)
    const text = yield* token
    return isAccessToken(text)
      ? yield* byAccessToken(access.value.authenticate, request, text)
      : yield* byKey(keys, text)
  })
})

type Request = HttpServerRequest.HttpServerRequest
type Authenticate = (token: string) => Effect.Effect<TokenHolder, Problem | StoreUnavailable>

const byKey = (keys: ApiKeys["Service"], token: string) =>
  Effect.map(keys.authenticate(token), (principal): McpCaller => ({
    principal,
    token: undefined,
    mayStill: keys.confirm(token)
  }))

/** Sets `WWW-Authenticate` on responses with this status (RFC 6750, section 3; RFC 9728, section 5.1). */
const makeChallenge = Effect.map(
  AppConfig,
  ({ baseUrl }) =>
    (
      status: number,
      error: "insufficient_scope" | "invalid_token" | undefined,
      scopes: ReadonlyArray<Scope>
    ) => {
      const parts = [
        ...(error === undefined ? [] : [`error="${error}"`]),
        `resource_metadata="${baseUrl}${mcpMetadataPath}"`,
        ...(scopes.length === 0 ? [] : [`scope="${scopes.join(" ")}"`])
      ]
      const value = `Bearer ${parts.join(", ")}`
      return HttpEffect.appendPreResponseHandler((_request, response) =>
        Effect.succeed(
          response.status === status
            ? HttpServerResponse.setHeader(response, "www-authenticate", value)
            : response
        )
      )
    }
)

/**
 * Refuses a token that lacks a scope. The challenge lists the scopes of the token and all those that the request needs,
 * because some clients request exactly the listed scopes and would lose the others.
 */
export const makeRequireScopes = Effect.gen(function* () {
  const { signIn } = yield* AppConfig
  const challenge = yield* makeChallenge
  const unasked = Option.match(signIn.oidc, {
    onNone: (): ReadonlyArray<Scope> => [],
    onSome: ({ tokenScopes }) => tokenScopes
  })
  return Effect.fnUntraced(function* ({ scopes }: Principal, needed: ReadonlyArray<Scope>) {
    const missing = needed.filter((scope) => !scopes.includes(scope))
    if (missing.length === 0) return
    const asked = [...scopes, ...missing].filter((scope) => !unasked.includes(scope))
    yield* challenge(403, "insufficient_scope", asked)
    return yield* problem(
      1004,
      `This access token lacks the scope ${missing.join(" ")}, which the OpenID provider grants, or the operator in OIDC_TOKEN_SCOPES`
    )
  })
})

/**
 * Writes the first use of each access token in this process to the audit log. This counts as a request of the token's
 * user, so that a client with many tokens cannot fill the log.
 */
const makeRecordUse = Effect.gen(function* () {
  const log = yield* AuditLog
  const quotas = yield* RequestQuotas
  const addressOf = yield* makeClientAddress
  const used = new Map<KeyDigest, true>()
  return Effect.fnUntraced(function* (request: Request, digest: KeyDigest, holder: TokenHolder) {
    if (used.has(digest)) return
    const { clientId, principal, subject, tokenId } = holder
    const { scopes, userId } = principal
    yield* quotas.takeManagement(userId)
    remember(used, digest, true)
    const entry = {
      type: "useAccessToken",
      actor: { type: "access_token" as const, id: subject, userId },
      ipAddress: Option.getOrNull(addressOf(request)),
      userId,
      resourceId: tokenId,
      changes: { client_id: clientId, scopes },
      traceId: (yield* RequestTrace).traceId,
      isDone: false
    }
    yield* log
      .around(entry)(Effect.void)
      .pipe(Effect.onError(() => Effect.sync(() => used.delete(digest))))
  })
})
