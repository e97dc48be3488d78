import { Cause, Context, Effect, Metric, Option } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { faultsOf } from "../../../catalog/FieldFaults.ts"
import {
  invalid,
  Problem,
  problem,
  problemCodes,
  statusOf,
  StoreUnavailable
} from "../../../domain/Problem.ts"
import { meantBy, placeOf } from "../../passthrough/PassthroughTarget.ts"
import type { Place } from "../../passthrough/PassthroughTarget.ts"
import { RequestTrace } from "../listener/RequestTrace.ts"
import { vendorHeaders, vendorMembers } from "./VendorErrors.ts"

/** The path without its query, for `instance`. */
export const pathOf = (request: HttpServerRequest.HttpServerRequest): string =>
  request.originalUrl.replace(/^https?:\/\/[^/?]*/iu, "").split("?", 1)[0] ?? "/"

const problemsTotal = Metric.counter("gateway_problems_total", {
  description: "Responses with a problem, by code",
  incremental: true
})
const none = Context.empty()

const series = new Map<number, Metric.Counter<number>>()

const countProblem = (code: number): void => {
  const counter = series.get(code) ?? Metric.withAttributes(problemsTotal, { code: String(code) })
  series.set(code, counter)
  counter.updateUnsafe(1, none)
}

/** The RFC 9457 body. Counts the problem by its code. docs/reference/errors.md#problem-body */
export const problemBody = (fault: Problem, place: Place, traceId: string) => {
  countProblem(fault.code)
  const { title } = problemCodes[fault.code]
  const status = statusOf(fault)
  const errors = fault.errors === undefined ? {} : { errors: fault.errors }
  const task = fault.task === undefined ? {} : { task: fault.task }
  const remaining = fault.remaining === undefined ? {} : { remaining: fault.remaining }
  return {
    type: `/docs/errors#${fault.code}`,
    title,
    status,
    detail: fault.detail,
    instance: place.path,
    code: fault.code,
    ...errors,
    ...remaining,
    ...task,
    ...vendorMembers(fault, place, traceId)
  }
}

interface RenderedProblem {
  readonly status: number
  /** Includes `Content-Type` and `Traceparent`, but not `Content-Length`. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A rendered problem, for a route or the listener to send. */
export const renderProblem = (
  fault: Problem,
  place: Place,
  { traceId, traceparent }: RequestTrace["Service"]
): RenderedProblem => {
  const body = problemBody(fault, place, traceId)
  return {
    status: body.status,
    headers: {
      "content-type": "application/problem+json",
      traceparent,
      ...headersOf(fault, body.status),
      ...vendorHeaders(body.status, place, traceId)
    },
    body: JSON.stringify(body)
  }
}

/** The `Retry-After` of an unavailable service if no better value is known, in seconds. */
const notReadySeconds = 1

/** The headers of a problem. docs/reference/errors.md#headers-of-errors */
const headersOf = (fault: Problem, status: number): Record<string, string> => ({
  ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  ...(status === 413 || status === 408 || fault.code === 2014 ? { connection: "close" } : {}),
  // RFC 9110, 15.5.22. Closes the connection, because no WebSocket client sends a second request on it
  ...(status === 426 ? { upgrade: "HTTP/1.1", connection: "Upgrade, close" } : {}),
  ...(fault.allow === undefined ? {} : { allow: fault.allow.join(", ") }),
  ...(status === 429 || status === 503 || fault.retryAfterSeconds !== undefined
    ? { "retry-after": String(fault.retryAfterSeconds ?? notReadySeconds) }
    : {})
})

const toResponse = (
  fault: Problem,
  context: Context.Context<never>
): HttpServerResponse.HttpServerResponse => {
  const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
  const trace = Context.getUnsafe(context, RequestTrace)
  const place = placeOf(pathOf(request), request.headers)
  const { body, headers, status } = renderProblem(fault, place, trace)
  return HttpServerResponse.text(body, {
    status,
    headers,
    contentType: "application/problem+json"
  })
}

/** A problem as the response to the current request. */
export const problemResponse = (
  fault: Problem
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | RequestTrace
> => Effect.withFiber((fiber) => Effect.succeed(toResponse(fault, fiber.context)))

/** The problem of a failure. `None` for a defect of the service, which is logged. */
export const problemOf = (error: unknown): Option.Option<Problem> => {
  if (error instanceof Problem) return Option.some(error)
  if (error instanceof StoreUnavailable) {
    return Option.some(problem(5003, "The store cannot be reached: try again shortly"))
  }
  if (HttpApiError.HttpApiSchemaError.is(error)) return schemaProblem(error)
  if (HttpServerError.isHttpServerError(error)) {
    if (error.reason._tag === "RouteNotFound") {
      const noRoute = "There is no such route"
      const meant = meantBy(pathOf(error.reason.request))
      return Option.some(
        problem(2006, meant === undefined ? noRoute : `${noRoute}: ${meant.advice}`)
      )
    }
    if (error.reason._tag === "RequestParseError") {
      return Option.some(
        error.reason.reason === "BodyTooLarge"
          ? problem(2004, "The body is too large")
          : problem(2002, "The body could not be read")
      )
    }
  }
  return Option.none()
}

const schemaProblem = (error: HttpApiError.HttpApiSchemaError): Option.Option<Problem> => {
  switch (error.kind) {
    case "Payload":
      return Option.some(
        String(error.cause.message).includes("Expected a valid JSON body")
          ? problem(2002, "The body is not valid JSON")
          : invalid(faultsOf(error.cause.issue))
      )
    case "Params":
      return Option.some(problem(2005, "There is no such resource"))
    case "Query":
    case "Headers":
      return Option.some(
        invalid(
          faultsOf(error.cause.issue).map(({ detail, pointer }) => ({
            pointer: pointer.replace(/^#/u, `#/${error.kind.toLowerCase()}`),
            detail
          }))
        )
      )
    default:
      return Option.none()
  }
}

/** The problem of a failure. A defect is logged; its problem does not reveal it. */
export const faultOf = (
  cause: Cause.Cause<unknown>,
  method: string,
  path: string
): Effect.Effect<Problem> => {
  const fault = problemOf(Cause.squash(cause))
  if (Option.isSome(fault)) return Effect.succeed(fault.value)
  return Effect.as(Effect.logError(`${method} ${path} failed inside the service`, cause), failed)
}

const failed = problem(5000, "Something failed inside the service")

/**
 * Turns any failure of a route into a problem. The error type is kept, because the router does not accept a middleware
 * that handles all errors. Every route has the request and its trace in its context.
 */
export const renderFailures = <E, R>(
  self: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.catchCause(self, (cause) =>
    Effect.withFiber(({ context }) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
      return Effect.map(faultOf(cause, request.method, pathOf(request)), (fault) =>
        toResponse(fault, context)
      )
    })
  )
