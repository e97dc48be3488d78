import { Context, Effect, Exit, Option } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { TaskId } from "../../domain/Ids.ts"
import { Problem, problem } from "../../domain/Problem.ts"
import { Secrets } from "../../process/Secrets.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import type { Principal, Rate } from "../../users/ApiKeys.ts"
import { headerText } from "./HeaderText.ts"
import type { HeaderValues } from "./HeaderText.ts"

/** The caller of the management API: the operator, or a user with a key of scope `manage`. */
export type Caller =
  | { readonly _tag: "Operator" }
  | { readonly _tag: "User"; readonly principal: Principal }

export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()(
  "gateway/http/CurrentCaller"
) {}

const bearer = /^bearer +(\S+) *$/iu

/** The token of `Authorization: Bearer …`; 1001 without one. */
const tokenOf = (headers: HeaderValues): Exit.Exit<string, Problem> => {
  const header = headerText(headers, "authorization")
  if (header === undefined || header.trim() === "") return tokenMissing
  const token = bearer.exec(header)?.[1]
  return token === undefined ? tokenMalformed : Exit.succeed(token)
}

const readToken = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
  tokenOf(headers)
)

const tokenMissing = Exit.fail(problem(1001, "Send an API key as Authorization: Bearer <API_KEY>"))
const tokenMalformed = Exit.fail(
  problem(1002, "The Authorization header is not of the form: Bearer <API_KEY>")
)

/**
 * The caller of a model endpoint, and the task that the path names. Requires an API key with scope
 * `inference` within its request rate. With a rate limit every response gets `RateLimit-*`, also a
 * problem. docs/reference/keys-and-limits.md#request-rate
 */
export const admitInference = (taskId: Option.Option<TaskId>) =>
  Effect.flatMap(ApiKeys, (keys) =>
    Effect.flatMap(readToken, (token) =>
      Effect.tap(keys.admit(token, taskId), ({ rate }) =>
        Option.isNone(rate) ? Effect.void : showRate(rate.value)
      )
    )
  )

/** The same for a path that names no task. */
export const authenticateInference = Effect.map(
  admitInference(Option.none()),
  ({ principal }) => principal
)

const showRate = Effect.fnUntraced(function* (rate: Rate) {
  const headers = {
    "ratelimit-limit": String(rate.limit),
    "ratelimit-remaining": String(rate.remaining),
    "ratelimit-reset": String(rate.resetSeconds)
  }
  yield* HttpEffect.appendPreResponseHandler((_request, response) =>
    Effect.succeed(HttpServerResponse.setHeaders(response, headers))
  )
  if (!rate.admitted) {
    return yield* new Problem({
      code: 1201,
      detail: `This ${rate.of} may send ${rate.limit} requests a minute`,
      retryAfterSeconds: rate.resetSeconds
    })
  }
})

/**
 * The token of a passthrough call: from `Authorization`, or where the
 * vendors' clients put it. ADR 0074.
 */
export const clientTokenOf = (headers: HeaderValues): Exit.Exit<string, Problem> => {
  const given = headerText(headers, "x-api-key") ?? headerText(headers, "x-goog-api-key")
  return headers["authorization"] === undefined && given !== undefined
    ? Exit.succeed(given.trim())
    : tokenOf(headers)
}

/** Gemini's clients may put it in the query; a header goes before it. */
const readClientToken = (queryKey: string | undefined) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const token = clientTokenOf(headers)
    return token === tokenMissing && queryKey !== undefined ? Exit.succeed(queryKey) : token
  })

/**
 * The caller of a passthrough call. A metered call checks a cached key
 * again when it holds the price.
 */
export const authenticatePassthrough =
  (keys: ApiKeys["Service"]) => (isMetered: boolean, queryKey: string | undefined) =>
    Effect.flatMap(readClientToken(queryKey), (token) =>
      Effect.flatMap(
        isMetered ? keys.admitCached(token) : keys.admit(token, Option.none()),
        ({ principal, rate }) => {
          const caller = { principal, token }
          return Option.isSome(rate)
            ? Effect.as(showRate(rate.value), caller)
            : Effect.succeed(caller)
        }
      )
    )

/** The caller of a management endpoint. docs/reference/http.md#management-api */
export const authenticateManagement = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const secrets = yield* Secrets
  const token = yield* readToken
  if (secrets.isAdminToken(token)) return { _tag: "Operator" } satisfies Caller
  const principal = yield* keys.authenticate(token)
  if (!principal.scopes.includes("manage")) {
    return yield* problem(1004, "This API key lacks the scope manage")
  }
  return { _tag: "User", principal } satisfies Caller
})

/** Whether the request has the operator's token, on a route that needs none. */
export const hasOperatorToken = (secrets: Secrets["Service"]) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    Exit.match(tokenOf(headers), { onFailure: () => false, onSuccess: secrets.isAdminToken })
  )

/** The user of an endpoint for users; the operator is no user. */
export const requireUser = Effect.flatMap(CurrentCaller, (caller) =>
  caller._tag === "User"
    ? Effect.succeed(caller.principal.userId)
    : Effect.fail(problem(1004, "This endpoint is a user's: call it with an API key of that user"))
)

export const requireOperator = Effect.flatMap(CurrentCaller, (caller) =>
  caller._tag === "Operator"
    ? Effect.void
    : Effect.fail(problem(1004, "This endpoint is the operator's: call it with the ADMIN_TOKEN"))
)
