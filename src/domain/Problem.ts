import { Schema } from "effect"
import { TaskId } from "./Ids.ts"
import { TaskError, TaskStatus } from "./task/Task.ts"

/**
 * HTTP status and title of each code; `forbidden` is the status of a problem with that flag.
 * docs/reference/errors.md#problem-codes
 */
export const problemCodes = {
  1001: { status: 401, title: "API key missing" },
  1002: { status: 401, title: "API key unknown or malformed" },
  1003: { status: 401, title: "API key expired or revoked", forbidden: 403 },
  1004: { status: 403, title: "API key lacks the scope" },
  1005: { status: 401, title: "Sign-in refused" },
  1006: { status: 401, title: "Session ended" },
  1007: { status: 403, title: "Request from another site" },
  1101: { status: 402, title: "Balance too low" },
  1102: { status: 402, title: "Spend limit of the API key reached" },
  1103: { status: 402, title: "Costs more than the request allows" },
  1201: { status: 429, title: "Request rate limit reached" },
  1202: { status: 429, title: "Running-task limit reached" },
  1203: { status: 429, title: "Upstream rate used up" },
  2001: { status: 400, title: "Invalid parameter" },
  2002: { status: 400, title: "Malformed JSON" },
  2003: { status: 415, title: "Body is not JSON" },
  2004: { status: 413, title: "Body too large" },
  2005: { status: 404, title: "Not found" },
  2006: { status: 404, title: "Unknown vendor, model or route" },
  2007: { status: 405, title: "Method not allowed" },
  2008: { status: 422, title: "Idempotency key reused" },
  2010: { status: 409, title: "Conflict with the current state" },
  2011: { status: 400, title: "Webhook URL refused" },
  2012: { status: 403, title: "Link expired or signature wrong" },
  2013: { status: 416, title: "Range not satisfiable" },
  2014: { status: 400, title: "Malformed HTTP" },
  2015: { status: 408, title: "Request time-out" },
  2016: { status: 431, title: "Headers too large" },
  2017: { status: 424, title: "Task has not ended" },
  2018: { status: 400, title: "Task refused by the vendor" },
  2019: { status: 424, title: "Task failed" },
  2020: { status: 426, title: "WebSocket not offered" },
  5000: { status: 500, title: "Internal error" },
  5002: { status: 502, title: "Upstream unreachable or broken" },
  5003: { status: 503, title: "Not ready" },
  5004: { status: 504, title: "Upstream time-out" }
} as const

export type ProblemCode = keyof typeof problemCodes

/** 4xx statuses that may be resolved by waiting. */
const passing: ReadonlySet<number> = new Set([408, 409, 425, 429])

/** Whether the same request would be refused again. docs/reference/errors.md#headers-of-errors */
export const isFinal = (status: number): boolean =>
  status >= 400 && status < 500 && !passing.has(status)

/** One fault of a body and its place as a JSON pointer (URI fragment). docs/reference/errors.md#faults-of-a-body */
export const FieldFault = Schema.Struct({ pointer: Schema.String, detail: Schema.String })
export type FieldFault = typeof FieldFault.Type

export const ProblemCodeSchema = Schema.Literals([
  1001, 1002, 1003, 1004, 1005, 1006, 1007, 1101, 1102, 1103, 1201, 1202, 1203, 2001, 2002, 2003,
  2004, 2005, 2006, 2007, 2008, 2010, 2011, 2012, 2013, 2014, 2015, 2016, 2017, 2018, 2019, 2020,
  5000, 5002, 5003, 5004
] satisfies ReadonlyArray<ProblemCode>)

/** A task that exists even though the request failed. docs/reference/shapes.md#waiting-for-a-task */
const TaskReference = Schema.Struct({
  id: TaskId,
  /** The URL for its GET. */
  url: Schema.String,
  status: TaskStatus,
  error: Schema.optionalKey(TaskError)
})

/**
 * Every failure that is reported to a client. Callers branch on `code`. Only src/http turns it into an RFC 9457 body.
 * docs/reference/errors.md#problem-body
 */
export class Problem extends Schema.TaggedError<Problem>()("Problem", {
  code: ProblemCodeSchema,
  /** The message for the client. Contains neither secrets nor internals. */
  detail: Schema.String,
  /** All faults of the body, with code 2001. */
  errors: Schema.optionalKey(Schema.Array(FieldFault)),
  /** Seconds, sent as `Retry-After`. */
  retryAfterSeconds: Schema.optionalKey(Schema.Int),
  /** With code 1003: the key is valid, but not for this request. */
  forbidden: Schema.optionalKey(Schema.Literal(true)),
  /** Credits left of the key's spend limit, with code 1102. */
  remaining: Schema.optionalKey(Schema.String),
  /** With codes 2017 to 2019: the task behind the request, which must not be sent again. */
  task: Schema.optionalKey(TaskReference),
  /** Methods of the route, sent as `Allow` with code 2007. */
  allow: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  override get message(): string {
    return this.detail
  }
}

/** The HTTP status of a problem. */
export const statusOf = ({ code, forbidden }: Problem): number =>
  code === 1003 && forbidden === true ? problemCodes[code].forbidden : problemCodes[code].status

export const problem = (code: ProblemCode, detail: string): Problem => new Problem({ code, detail })

export const invalid = (errors: ReadonlyArray<FieldFault>): Problem =>
  new Problem({
    code: 2001,
    detail:
      errors.length === 1
        ? `${errors[0]?.pointer}: ${errors[0]?.detail}`
        : `${errors.length} parameters are invalid, see errors`,
    errors
  })

/** The store cannot be reached now; nothing was changed. Reported as 503, code 5003. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  cause: Schema.Defect()
}) {}
