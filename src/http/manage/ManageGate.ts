import { Effect, Exit, Layer, Option, Context } from "effect"
import { HttpServerRequest, HttpServerResponse, HttpRouter } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import type { HttpApiEndpoint } from "effect/http-api"
import { sizeFaults } from "../../catalog/bodies/Decode.ts"
import { longTextFaults, pointerOf } from "../../catalog/FieldFaults.ts"
import { CurrentCaller, ManageGate, ManageProblems, ChangesAccess } from "../../contract/Access.ts"
import type { Caller } from "../../contract/Access.ts"
import { manageReads } from "../../domain/limits/ShareLimits.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { FairShares } from "../../domain/shares/FairShares.ts"
import { AuditLog } from "../../process/audit/AuditLog.ts"
import { previousSecret } from "../../users/ApiKeys.ts"
import { ManageReplays } from "../../users/ManageReplays.ts"
import { RequestQuotas } from "../../users/RequestQuotas.ts"
import { actorOf, makeAuthenticateManagement } from "../server/access/Authentication.ts"
import { announcesBody, readJsonBody, withJsonType } from "../server/bodies/JsonBody.ts"
import type { JsonBody } from "../server/bodies/JsonBody.ts"
import { RequestBodyLimiter } from "../server/bodies/RequestBodyLimiter.ts"
import { readIdempotencyKey } from "../server/IdempotencyKey.ts"
import { makeClientAddress } from "../server/listener/ClientAddress.ts"
import { renderFailures } from "../server/problems/Problems.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { auditRequest } from "./ManageAudit.ts"

/** Implements `ManageGate` of the contract. */
export const layer = Layer.effect(
  ManageGate,
  Effect.gen(function* () {
    const addressOf = yield* makeClientAddress
    const audit = yield* AuditLog
    const bodies = yield* RequestBodyLimiter
    const quotas = yield* RequestQuotas
    const replays = yield* ManageReplays
    const authenticate = yield* makeAuthenticateManagement
    const reads = new FairShares(manageReads)
    const takeQuota = (caller: Caller) =>
      caller._tag === "User" ? quotas.takeManagement(caller.userId) : Effect.void

    const handle = Effect.fnUntraced(function* <E, R>(
      handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
      endpoint: HttpApiEndpoint.Top,
      request: HttpServerRequest.HttpServerRequest,
      first: Caller
    ) {
      const body = yield* checkRequest(endpoint)
      // The key or the session may have ended while the body was being received
      const caller = body.value !== undefined ? yield* authenticate(request, false) : first
      yield* authorizeAccessChange(endpoint, caller)
      const actor = actorOf(caller)
      const audited = Effect.provideService(handled, CurrentCaller, caller).pipe(
        withReadBody(body),
        Effect.annotateLogs("actor", actor),
        auditRequest(audit, { actor, ipAddress: addressOf(request) }, endpoint, body.value)
      )
      const mayStill = authenticate(request, false)
      return yield* replayed(replays, { endpoint, caller, body, mayStill }, audited)
    })

    return {
      bearer: (httpEffect, { endpoint }) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          const caller = yield* Effect.tap(authenticate(request), takeQuota)
          const name = nameOf(caller)
          const handled = handle(httpEffect, endpoint, request, caller)
          const admitted = isRead(request)
            ? Effect.catchTag(reads.within(name)(handled), "ShareExhausted", Effect.die)
            : handled
          return yield* bodies.within(request, name)(admitted)
        }).pipe(withJsonType)
    }
  })
)

/** Implements `ManageProblems` of the contract. */
export const problemsLayer = Layer.succeed(ManageProblems, (httpEffect) =>
  renderFailures(httpEffect)
)

const isRead = ({ method }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "GET" || method === "HEAD"

/** Identifies the caller, for the body capacity and for idempotency keys. */
const nameOf = (caller: Caller): string => (caller._tag === "Operator" ? "operator" : caller.userId)

/**
 * Reads and checks the body. Refuses what `HttpApi` accepts silently: undeclared query parameters, a body that is not
 * declared as JSON or not UTF-8, too many fields, and fields where the endpoint declares no body.
 * docs/reference/http.md#request-bodies, ADR 0110.
 */
export const checkRequest = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
  if (endpoint.query === undefined) yield* refuseUnknownQuery([])
  const request = yield* HttpServerRequest.HttpServerRequest
  if (isRead(request)) return noBody
  const hasBody = announcesBody(request)
  const takesBody = endpoint.payload.size > 0
  const needsBody = takesBody && !mayHaveNoBody(endpoint)
  if (!takesBody && !hasBody) return noBody
  // `renderFailures` turns these defects into problems. Requests within a test process announce no length
  if (!needsBody && !hasBody && (yield* Effect.orDie(request.arrayBuffer)).byteLength === 0) {
    return emptyBody
  }
  const body = yield* Effect.catchTag(readJsonBody, "HttpServerError", Effect.die)
  const { value } = body
  const tooLarge = [...sizeFaults(value), ...longTextFaults(value)]
  if (tooLarge.length > 0) return yield* invalid(tooLarge)
  if (needsBody) return body
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return yield* invalid([{ pointer: "#", detail: "Expected no body, or an object" }])
  }
  if (takesBody) return body
  const faults = Object.keys(value).map((name) => ({
    pointer: pointerOf([name]),
    detail: "Unknown field"
  }))
  return faults.length > 0 ? yield* invalid(faults) : body
})

/** Passes the body that was read on to `HttpApi`, which decodes its text. */
export const withReadBody = ({ value }: JsonBody) =>
  Effect.updateService(
    HttpServerRequest.HttpServerRequest,
    (request): HttpServerRequest.HttpServerRequest =>
      value === undefined || value === emptyBody.value
        ? request
        : Object.create(request, { text: { value: Effect.sync(() => JSON.stringify(value)) } })
  )

/** Whether the body may be left out, because all its members are optional. */
const mayHaveNoBody = ({ payload }: HttpApiEndpoint.Top): boolean =>
  [...payload.values()].some(({ schemas }) =>
    schemas.some(({ ast }) => HttpApiSchema.isNoContent(ast))
  )

const noBody: JsonBody = { value: undefined }

/** Stands for an absent body, so that the request equals one with `{}`. */
const emptyBody: JsonBody = { value: {} }

/** An authorized request with its body. */
interface Checked {
  readonly endpoint: HttpApiEndpoint.Top
  readonly caller: Caller
  readonly body: JsonBody
  /** Fails once the key or the session has ended. */
  readonly mayStill: Effect.Effect<
    unknown,
    Problem | StoreUnavailable,
    HttpServerRequest.HttpServerRequest
  >
}

/**
 * Replays the first response to a POST with the same `Idempotency-Key`. Once the first request has claimed the key, it
 * runs to its end even if its client disconnects. docs/reference/http.md#idempotency-of-management-requests
 */
const replayed = <E, R>(
  replays: ManageReplays["Service"],
  { body, caller, endpoint, mayStill }: Checked,
  handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (request.method !== "POST" || request.headers["idempotency-key"] === undefined) {
      return yield* handled
    }
    const [, query] = request.originalUrl.split("?", 2)
    const key = yield* readIdempotencyKey(request, body, query === undefined ? "" : `?${query}`)
    if (Option.isNone(key)) return yield* handled
    const claim = yield* replays.claim({
      ...key.value,
      caller: nameOf(caller),
      key: replayKeyOf(endpoint, caller, key.value.key)
    })
    if (claim._tag === "Replayed") {
      // The caller's access may have ended while the repeat waited for the first request
      yield* mayStill
      return HttpServerResponse.text(claim.response.body, {
        status: claim.response.status,
        contentType: "application/json",
        headers: { "idempotency-replayed": "true" }
      })
    }
    return yield* Effect.onExit(handled, (exit) =>
      claim.complete(
        Exit.map(exit, (response) => ({ status: response.status, body: textOf(response) }))
      )
    ).pipe(Effect.uninterruptible)
  })

/**
 * The key under which a response is stored. A response that may contain a secret is stored for the acting API key or
 * session, other responses for the user. The separator cannot occur in a header.
 */
const replayKeyOf = (endpoint: HttpApiEndpoint.Top, caller: Caller, key: string): string => {
  if (caller._tag === "Operator" || Option.isNone(accessChangedBy(endpoint))) return key
  return `${caller.key?.apiKeyId ?? caller.session?.id}\n${key}`
}

/** The text of a response. `HttpApi` only creates responses with complete bodies. */
const textOf = ({ body }: HttpServerResponse.HttpServerResponse): string =>
  body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""

const accessChangedBy = ({ annotations }: HttpApiEndpoint.Top) =>
  Context.getOption(annotations, ChangesAccess)

/**
 * Refuses changes of access by a replaced secret, and by a key with limits unless it rotates or revokes itself. Runs
 * before a stored response is replayed.
 */
const authorizeAccessChange = Effect.fnUntraced(function* (
  endpoint: HttpApiEndpoint.Top,
  caller: Caller
) {
  const changed = accessChangedBy(endpoint)
  if (Option.isNone(changed) || caller._tag === "Operator" || caller.key === undefined) return
  const { apiKeyId, isLimited, isPrevious } = caller.key
  if (isPrevious) return yield* previousSecret
  const { id } = yield* HttpRouter.params
  if (isLimited && changed.value !== "endpoints" && id !== apiKeyId) return yield* limitedKey
})

const limitedKey = problem(
  1004,
  "An API key with limits cannot create or change other keys, or end sessions"
)
