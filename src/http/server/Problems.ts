import { Cause, Effect, Option } from "effect"
import { HttpServerError, HttpServerResponse } from "effect/http"
import type { HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { faultsOf } from "../../catalog/FieldFaults.ts"
import { invalid, Problem, problem, problemCodes, StoreUnavailable } from "../../domain/Problem.ts"

/** Routes that OpenAI's SDKs call: their problems carry an `error` member beside. Contract 2. */
const isOpenAiShaped = (path: string): boolean =>
  path.startsWith("/v1/") || path.startsWith("/vendors/openai/")

const openAiType = (status: number): string => {
  if (status === 401) return "authentication_error"
  if (status === 403) return "permission_error"
  if (status === 402) return "insufficient_quota"
  if (status === 429) return "rate_limit_error"
  return status >= 500 ? "server_error" : "invalid_request_error"
}

/** The path without its query: what `instance` names. */
export const pathOf = (request: HttpServerRequest.HttpServerRequest): string =>
  request.originalUrl.replace(/^https?:\/\/[^/?]*/iu, "").split("?", 1)[0] ?? "/"

/** The RFC 9457 body of contract 2. */
export const problemBody = (fault: Problem, path: string) => {
  const { status, title } = problemCodes[fault.code]
  const errors = fault.errors === undefined ? {} : { errors: fault.errors }
  const openAi = {
    error: {
      message: fault.detail,
      type: openAiType(status),
      param: fault.errors?.[0]?.pointer ?? null,
      code: String(fault.code)
    }
  }
  return {
    type: `/docs/errors#${fault.code}`,
    title,
    status,
    detail: fault.detail,
    instance: path,
    code: fault.code,
    ...errors,
    ...(isOpenAiShaped(path) ? openAi : {})
  }
}

/** The answer of contract 2. */
export const toResponse = (fault: Problem, path: string): HttpServerResponse.HttpServerResponse => {
  const { status } = problemCodes[fault.code]
  return HttpServerResponse.jsonUnsafe(problemBody(fault, path), {
    status,
    contentType: "application/problem+json",
    headers: headersOf(fault, status)
  })
}

/** How long to wait when the service is not ready and knows no better, in seconds. */
const notReadySeconds = 1

const headersOf = (fault: Problem, status: number): Record<string, string> => ({
  ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  ...(status === 413 || status === 408 || fault.code === 2014 ? { connection: "close" } : {}),
  ...(fault.allow === undefined ? {} : { allow: fault.allow.join(", ") }),
  ...(status === 429 || status === 503
    ? { "retry-after": String(fault.retryAfterSeconds ?? notReadySeconds) }
    : {})
})

/** What a client is told of any failure; `None` for a defect of ours, which is logged. */
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
 * Answers any failure of a route as a problem; defects are logged and answered without inner detail.
 * The error type stays, because the router lets no middleware claim that it handles all.
 */
export const rescue = <E, R>(
  self: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.catchCause(self, (cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
    const path = pathOf(request)
    const told = problemOf(Cause.squash(cause))
    if (Option.isSome(told)) return Effect.succeed(toResponse(told.value, path))
    return Effect.as(
      Effect.logError(`${request.method} ${path} failed inside the service`, cause),
      toResponse(problem(5000, "Something failed inside the service"), path)
    )
  })
