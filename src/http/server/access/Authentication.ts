import { Effect, Exit, Option } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentCaller } from "../../../contract/Access.ts"
import type { Caller } from "../../../contract/Access.ts"
import type { TaskId, UserId } from "../../../domain/Ids.ts"
import { Problem, problem } from "../../../domain/Problem.ts"
import type { StoreUnavailable } from "../../../domain/Problem.ts"
import { Secrets } from "../../../process/secrets/Secrets.ts"
import type { MayStill } from "../../../tasks/TaskWatch.ts"
import { ApiKeys } from "../../../users/ApiKeys.ts"
import type { Admitted, Rate } from "../../../users/ApiKeys.ts"
import { Sessions } from "../../../users/Sessions.ts"
import type { SessionRow } from "../../../users/Sessions.ts"
import { tokenMissing, tokenOf } from "./ClientKeys.ts"
import { makeSessionCookies } from "./SessionCookies.ts"
import { makeSessionUseOf, sessionEnded } from "./SessionKeys.ts"
import { TokenUse } from "./TokenUse.ts"

/** Who sent a request: an API key, a session, or the holder of the operator's token. */
export interface Actor {
  readonly type: "api_key" | "session" | "operator"
  /** The id of the key or the session; null for the operator's token. */
  readonly id: string | null
  /** Null for the operator. */
  readonly userId: UserId | null
}

export const actorOf = (caller: Caller): Actor => {
  const userId = caller._tag === "User" ? caller.userId : null
  if (caller.session !== undefined) return { type: "session", id: caller.session.id, userId }
  return caller._tag === "User"
    ? { type: "api_key", id: caller.key?.apiKeyId ?? null, userId }
    : { type: "operator", id: null, userId }
}

/**
 * An admitted caller of a model endpoint. A response that waits checks every second whether the caller still has
 * access.
 */
export interface AdmittedCaller extends Admitted {
  readonly mayStill: MayStill
  /** Fails if the session has ended while the body arrived. The store itself checks a key when it accepts. */
  readonly isSignedIn: MayStill
}

/**
 * Admits the caller of a model endpoint and reads the task that the path names. Requires an API key with scope
 * `inference` within its request rate, a session, or at `/mcp` an access token. With a rate limit, every response gets
 * `RateLimit-*`, including problems. docs/reference/keys-and-limits.md#request-rate
 */
export const makeAdmitInference = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const sessionUseOf = yield* makeSessionUseOf
  const within = (
    admitted: Effect.Effect<Admitted, Problem | StoreUnavailable>,
    mayStill: MayStill,
    isSignedIn: MayStill = Effect.void
  ) => Effect.map(admitted, (it): AdmittedCaller => ({ ...it, mayStill, isSignedIn }))
  const byKeyOrSession = (request: Request, taskId: Option.Option<TaskId>) => {
    const token = tokenOf(request.headers)
    if (token !== tokenMissing) {
      return Effect.flatMap(token, (it) => within(keys.admit(it, taskId), keys.confirm(it)))
    }
    return Effect.flatMap(sessionUseOf(request), (use) =>
      Option.isNone(use)
        ? tokenMissing
        : within(keys.admitHash(use.value.keyHash, taskId), use.value.mayStill, use.value.mayStill)
    )
  }
  const admit = (request: Request, taskId: Option.Option<TaskId>) =>
    Effect.flatMap(TokenUse, (held) =>
      held === undefined
        ? byKeyOrSession(request, taskId)
        : within(keys.admitHash(held.keyHash, taskId), held.mayStill)
    )
  return (taskId: Option.Option<TaskId>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.tap(admit(request, taskId), ({ rate }) =>
        Option.isNone(rate) ? Effect.void : showRate(rate.value)
      )
    )
})

const showRate = Effect.fnUntraced(function* (rate: Rate) {
  const headers = rateHeaders(rate)
  yield* HttpEffect.appendPreResponseHandler((_request, response) =>
    Effect.succeed(HttpServerResponse.setHeaders(response, headers))
  )
  if (!rate.admitted) return yield* overRate(rate)
})

export const rateHeaders = ({ limit, remaining, resetSeconds }: Rate): Record<string, string> => ({
  "ratelimit-limit": String(limit),
  "ratelimit-remaining": String(remaining),
  "ratelimit-reset": String(resetSeconds)
})

export const overRate = ({ limit, of, resetSeconds }: Rate): Problem =>
  new Problem({
    code: 1201,
    detail: `This ${of} has a rate limit of ${limit} per minute`,
    retryAfterSeconds: resetSeconds
  })

/**
 * Authenticates the caller of a management endpoint. A header takes precedence over a cookie, because a page of another
 * site cannot make the browser send it. docs/reference/http.md#management-api
 */
export const makeAuthenticateManagement = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const secrets = yield* Secrets
  const sessions = yield* Sessions
  const cookies = yield* makeSessionCookies

  const byToken = Effect.fnUntraced(function* (token: string) {
    if (secrets.isAdminToken(token)) {
      return { _tag: "Operator", session: undefined } satisfies Caller
    }
    const key = yield* keys.authenticate(token)
    if (!key.scopes.includes("manage")) {
      return yield* problem(1004, "This API key lacks the scope manage")
    }
    return { _tag: "User", userId: key.userId, key, session: undefined } satisfies Caller
  })

  const bySession = Effect.fnUntraced(function* (request: Request, token: string, isUse: boolean) {
    yield* cookies.refuseForeign(request)
    const found = yield* sessions.find(token, isUse)
    if (Option.isNone(found)) {
      yield* cookies.clear
      return yield* sessionEnded
    }
    return callerOf(found.value)
  })

  /** `isUse` is false when an open response rechecks its caller, which is not a request of the user */
  return Effect.fnUntraced(function* (request: Request, isUse = true) {
    const cookie = cookies.tokenOf(request)
    return request.headers["authorization"] === undefined && cookie !== undefined
      ? yield* bySession(request, cookie, isUse)
      : yield* byToken(yield* tokenOf(request.headers))
  })
})

/**
 * Which series of `/metrics` the request may read. Fails if `METRICS_TOKEN` is set and the request lacks it. ADR 0223
 */
export const admitMetrics = ({ isAdminToken, isMetricsToken }: Secrets["Service"]) =>
  Effect.flatMap(
    HttpServerRequest.HttpServerRequest,
    ({ headers }): Effect.Effect<"all" | "unnamed", Problem> => {
      const token = tokenOf(headers)
      const isReader = (it: string) =>
        isAdminToken(it) || Option.exists(isMetricsToken, (isToken) => isToken(it))
      if (Exit.isSuccess(token) && isReader(token.value)) return Effect.succeed("all")
      if (Option.isNone(isMetricsToken)) return Effect.succeed("unnamed")
      return Effect.fail(
        problem(
          token === tokenMissing ? 1001 : 1002,
          "Send the service's METRICS_TOKEN as Authorization: Bearer <METRICS_TOKEN>"
        )
      )
    }
  )

type Request = HttpServerRequest.HttpServerRequest

const callerOf = (session: SessionRow): Caller => {
  const { apiKeyId, isLimited, isPrevious, userId } = session
  if (userId === null) return { _tag: "Operator", session }
  const key = apiKeyId === null ? undefined : { apiKeyId, isLimited, isPrevious }
  return { _tag: "User", userId, key, session }
}

/** The calling user. Fails for the operator, who is not a user. */
export const requireUser = Effect.flatMap(CurrentCaller, (caller) =>
  caller._tag === "User"
    ? Effect.succeed(caller.userId)
    : Effect.fail(problem(1004, "This endpoint is for users: call it with an API key of a user"))
)

/** The user whose resources are read: the caller, or the user that the operator names. */
export const requireReader = ({ user_id }: { readonly user_id?: UserId }) =>
  Effect.flatMap(CurrentCaller, (caller) => {
    if (caller._tag === "Operator") {
      return user_id === undefined ? nobodyNamed : Effect.succeed(user_id)
    }
    return user_id === undefined || user_id === caller.userId
      ? Effect.succeed(caller.userId)
      : otherNamed
  })

const nobodyNamed = Effect.fail(
  problem(
    1004,
    "This endpoint is for users: name the user with ?user_id=, or call it with an API key of the user"
  )
)
const otherNamed = Effect.fail(problem(1004, "Only the operator may name another user"))

export const requireOperator = Effect.flatMap(CurrentCaller, (caller) =>
  caller._tag === "Operator"
    ? Effect.void
    : Effect.fail(problem(1004, "This endpoint is for the operator: call it with the ADMIN_TOKEN"))
)

/** Admits only the user with this id and the operator. */
export const requireOwnerOrOperator = (id: UserId) =>
  Effect.flatMap(CurrentCaller, (caller) =>
    caller._tag === "User" && caller.userId === id ? Effect.void : requireOperator
  )
