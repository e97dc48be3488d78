import { Cause, Context, Effect, Metric, Option } from "effect"
import { HttpServerError, HttpServerResponse } from "effect/http"
import type { HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { faultsOf } from "../../catalog/FieldFaults.ts"
import {
  invalid,
  Problem,
  problem,
  problemCodes,
  statusOf,
  StoreUnavailable
} from "../../domain/Problem.ts"
import { vendorError } from "./VendorErrors.ts"

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

/** The RFC 9457 body, which is counted by its code. docs/reference/errors.md#problem-body */
export const problemBody = (fault: Problem, path: string) => {
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
    instance: path,
    code: fault.code,
    ...errors,
    ...remaining,
    ...task,
    ...vendorError(fault, path)
  }
}

/** A problem as a response. docs/reference/errors.md#headers-of-errors */
export const toResponse = (fault: Problem, path: string): HttpServerResponse.HttpServerResponse => {
  const status = statusOf(fault)
  return HttpServerResponse.jsonUnsafe(problemBody(fault, path), {
    status,
    contentType: "application/problem+json",
    headers: headersOf(fault, status)
  })
}

/** `Retry-After` of an unavailable service when no better time is known, in seconds. */
const notReadySeconds = 1

const headersOf = (fault: Problem, status: number): Record<string, string> => ({
  ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  ...(status === 413 || status === 408 || fault.code === 2014 ? { connection: "close" } : {}),
  // OpenAI's clients send a request again by themselves; here it would buy another task
  ...(fault.task === undefined ? {} : { "x-should-retry": "false" }),
  ...(fault.allow === undefined ? {} : { allow: fault.allow.join(", ") }),
  ...(status === 429 || status === 503 || fault.retryAfterSeconds !== undefined
    ? { "retry-after": String(fault.retryAfterSeconds ?? notReadySeconds) }
    : {})
})

/** The problem of a failure; `None` for a defect of the service, which is logged. */
export const problemOf = (error: unknown): Option.Option<Problem> => {
  if (error instanceof Problem) return Option.some(error)
  if (error instanceof StoreUnavailable) {
    return Option.some(problem(5003, "The store cannot be reached now: try again shortly"))
  }
  if (HttpApiError.HttpApiSchemaError.is(error)) return schemaProblem(error)
  if (HttpServerError.isHttpServerError(error)) {
    if (error.reason._tag === "RouteNotFound") {
      return Option.some(problem(2006, "There is no such route"))
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

/**
 * Returns any failure of a route as a problem; a defect is logged, and its problem has no detail of it.
 * The error type stays, because the router does not allow a middleware that handles all errors.
 */
export const renderFailures = <E, R>(
  self: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.catchCause(self, (cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
    const path = pathOf(request)
    const fault = problemOf(Cause.squash(cause))
    if (Option.isSome(fault)) return Effect.succeed(toResponse(fault.value, path))
    return Effect.as(
      Effect.logError(`${request.method} ${path} failed inside the service`, cause),
      toResponse(problem(5000, "Something failed inside the service"), path)
    )
  })
