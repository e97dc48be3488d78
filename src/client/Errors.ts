import type { Problem } from "./schema.ts"
import type { Task, TaskRef } from "./Task.ts"

/**
 * A fault in one field of a request. The field is a JSON pointer as a URI fragment, such as `#/images/0`.
 * docs/reference/errors.md#faults-of-a-body
 */
export type Fault = NonNullable<Problem["errors"]>[number]

/** The base class of all errors of failed requests: `catch (error) { if (error instanceof GatewayError) … }`. */
export class GatewayError extends Error {
  /** The name of the class, also in `name`; Effect's `catchTag` uses it. */
  readonly _tag: string = "GatewayError"
  /** HTTP status; 0 if there was no response. */
  readonly status: number
  /** docs/reference/errors.md#problem-codes; `undefined` if the response did not come from the gateway. */
  readonly code: number | undefined
  readonly title: string
  readonly detail: string
  readonly faults: ReadonlyArray<Fault>
  /** Identifies the request in the operator's logs and traces. docs/reference/http.md#trace */
  readonly traceId: string | undefined
  /** Seconds after which the request may be sent again. */
  readonly retryAfter: number | undefined
  /** The key sent with the request. Within 24 hours, the same request with this key creates nothing twice. */
  readonly idempotencyKey: string | undefined
  /** The body of the gateway's response, if there is one. docs/reference/errors.md#problem-body */
  readonly problem: Problem | undefined

  constructor(details: ErrorDetails, cause?: unknown) {
    const { code, detail, status, title, traceId } = details
    const marks = [
      code === undefined ? status > 0 && `HTTP ${status}` : `code ${code}`,
      traceId !== undefined && `trace ${traceId}`
    ].filter((it) => it !== false)
    super(
      [detail === "" ? title : `${title}: ${detail}`, marks.length > 0 && `(${marks.join(", ")})`]
        .filter((it) => it !== false)
        .join(" "),
      cause === undefined ? undefined : { cause }
    )
    this.status = status
    this.code = code
    this.title = title
    this.detail = detail
    this.faults = details.faults ?? []
    this.traceId = traceId
    this.retryAfter = details.retryAfter
    this.idempotencyKey = details.idempotencyKey
    this.problem = details.problem
  }

  static {
    const name = {
      get(this: GatewayError) {
        return this._tag
      }
    }
    Object.defineProperty(this.prototype, "name", name)
  }
}

/** The fields of an error. None of them is secret. */
export type ErrorDetails = Pick<GatewayError, "status" | "title" | "detail"> &
  Partial<Omit<GatewayError, keyof Error | "_tag">>

/** 401: the key is missing, unknown, expired or revoked. */
export class AuthenticationError extends GatewayError {
  override readonly _tag = "AuthenticationError"
}

/** 403: the key lacks the scope or does not allow the model. */
export class PermissionError extends GatewayError {
  override readonly _tag = "PermissionError"
}

/** 402: the balance, the key's spend limit or `maxCost` is too low. Nothing was created. */
export class InsufficientCreditsError extends GatewayError {
  override readonly _tag = "InsufficientCreditsError"
  /** Credits left of the key's spend limit, with code 1102. */
  readonly remaining: string | undefined

  constructor(details: ErrorDetails, remaining?: string) {
    super(details)
    this.remaining = remaining
  }
}

/** 400, 413, 415 and similar: the request is invalid. `faults` lists every fault of its fields. */
export class ValidationError extends GatewayError {
  override readonly _tag = "ValidationError"
}

/** 404: the model, route or resource does not exist, or belongs to another user. */
export class NotFoundError extends GatewayError {
  override readonly _tag = "NotFoundError"
}

/** 409: the current state does not allow the request. 422: the idempotency key was used with a different request. */
export class ConflictError extends GatewayError {
  override readonly _tag = "ConflictError"
}

/** 429: too many requests or running tasks. */
export class RateLimitError extends GatewayError {
  override readonly _tag = "RateLimitError"
}

/** 5xx, or a response that did not come from the gateway. */
export class ServerError extends GatewayError {
  override readonly _tag = "ServerError"
}

/**
 * There was no response, or it was cut off. Whether the request took effect is unknown. Sent again with its
 * `idempotencyKey`, it has no second effect and returns the first result.
 */
export class ConnectionError extends GatewayError {
  override readonly _tag = "ConnectionError"
}

/**
 * The caller's deadline has passed. The task continues. Without a `task`, a `run` has no response to its create, and it
 * is unknown whether the task exists: the same run with the `idempotencyKey` returns it.
 */
export class TimeoutError extends GatewayError {
  override readonly _tag = "TimeoutError"
  /** The task that was being waited for; `undefined` if a `run` had not created it. */
  readonly task: TaskRef | undefined

  constructor(details: ErrorDetails, task?: TaskRef) {
    super(details)
    this.task = task
  }
}

/** The task ended without a result, and nothing was charged. `code`: docs/reference/errors.md#task-error-codes */
export class TaskFailedError extends GatewayError {
  override readonly _tag = "TaskFailedError"
  readonly task: Task

  constructor(details: ErrorDetails, task: Task) {
    super(details)
    this.task = task
  }
}

/** All errors, for an exhaustive `switch (error._tag)`. */
export type ClientError =
  | AuthenticationError
  | PermissionError
  | InsufficientCreditsError
  | ValidationError
  | NotFoundError
  | ConflictError
  | RateLimitError
  | ServerError
  | ConnectionError
  | TimeoutError
  | TaskFailedError

const isProblem = (body: unknown): body is Problem =>
  typeof body === "object" && body !== null && "code" in body && "title" in body

/** The delay in seconds, from a number or an HTTP date. RFC 9110, 10.2.3 */
export const retryAfterOf = (headers: Headers, now: number): number | undefined => {
  const text = headers.get("retry-after")
  if (text === null) return undefined
  const seconds = /^\d+$/u.test(text) ? Number(text) : (Date.parse(text) - now) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

/** The error for an unsuccessful response. `body` is its parsed JSON, or its text. */
export const errorOf = (
  response: Response,
  body: unknown,
  request: { readonly now: number; readonly idempotencyKey: string | undefined }
): ClientError => {
  const problem = isProblem(body) ? body : undefined
  const { status } = response
  const details: ErrorDetails = {
    status,
    code: problem?.code,
    title: problem?.title ?? (response.statusText || `HTTP ${status}`),
    detail: problem?.detail ?? (typeof body === "string" ? body.slice(0, 500).trim() : ""),
    ...(problem?.errors === undefined ? {} : { faults: problem.errors }),
    problem,
    traceId: response.headers.get("traceparent")?.split("-")[1],
    retryAfter: retryAfterOf(response.headers, request.now),
    idempotencyKey: request.idempotencyKey
  }
  switch (status) {
    case 401:
      return new AuthenticationError(details)
    case 402:
      return new InsufficientCreditsError(details, problem?.remaining)
    case 403:
      return new PermissionError(details)
    case 404:
      return new NotFoundError(details)
    case 409:
    case 422:
      return new ConflictError(details)
    case 429:
      return new RateLimitError(details)
    default:
      return status >= 400 && status < 500 ? new ValidationError(details) : new ServerError(details)
  }
}
