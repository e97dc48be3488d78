import { Schema } from "effect"
import { Expression } from "./Expression.ts"
import { JsonPath, SingularPath } from "./JsonPath.ts"
import { Template } from "./Template.ts"

/** Never set by a file: they belong to the connection, or to the body. */
const ownHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "content-type",
  "expect",
  "host",
  "te",
  "transfer-encoding",
  "upgrade"
])

const HeaderName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z][A-Za-z0-9-]{0,63}$/u, { expected: "the name of a header" }),
  Schema.makeFilter<string>(
    (name) => !ownHeaders.has(name.toLowerCase()) || `The gateway itself sets ${name}`
  )
)

const HeaderValue = Schema.String.check(
  Schema.isPattern(/^[\x20-\x7e]{1,200}$/u, { expected: "1 to 200 printable characters" })
)

/** The name of a value that a submit leaves, or of a figure. */
const Name = Schema.String.check(
  Schema.isPattern(/^[a-z][A-Za-z0-9]{0,31}$/u, { expected: "a name such as id" })
)

/**
 * How the key is sent: no expression, only these. `jwt`: the key is `accessKey:secretKey`, and each request has a
 * bearer token signed with it (HS256). docs/vendors-as-files.md#authentication
 */
export const JobAuth = Schema.Union([
  Schema.Struct({ scheme: Schema.Literal("bearer") }),
  Schema.Struct({
    scheme: Schema.Literal("header"),
    name: HeaderName,
    /** Before the key, such as `Key `. */
    prefix: Schema.optionalKey(HeaderValue)
  }),
  Schema.Struct({
    scheme: Schema.Literal("query"),
    name: Schema.String.check(
      Schema.isPattern(/^[A-Za-z][A-Za-z0-9_-]{0,31}$/u, { expected: "the name of a parameter" })
    )
  }),
  Schema.Struct({ scheme: Schema.Literal("jwt") })
])
export type JobAuth = typeof JobAuth.Type

const placeholder = /\{([^{}]*)\}/gu

/** The names in the braces of a path. */
export const namesIn = (path: string): ReadonlyArray<string> =>
  Array.from(path.matchAll(placeholder), (match) => match[1] ?? "")

/** A path after the base, or `{name}`: a whole URL that the vendor named, of the vendor's own origin. */
export const RequestPath = Schema.String.check(
  Schema.isPattern(/^(?:\/[A-Za-z0-9._~!$&'()*+,;=:@/?%{}-]{0,300}|\{[a-z][A-Za-z0-9]{0,31}\})$/u, {
    expected: "a path such as /v1/tasks/{id}, or the name of a URL such as {statusUrl}"
  }),
  Schema.makeFilter<string>(
    (path) =>
      !/(?:^|\/)\.{1,2}(?:[/?]|$)/u.test(path) || "Expected a path without . and .. as its parts"
  )
)

const Paths = Schema.NonEmptyArray(JsonPath).check(Schema.isMaxLength(8))
const Words = Schema.NonEmptyArray(Schema.NonEmptyString).check(Schema.isMaxLength(32))

/** Where the results are in a response: at the first of these that has any. */
const places = {
  /** Of URLs; a list of them, or of objects with `url`. */
  urls: Schema.optionalKey(Paths),
  base64: Schema.optionalKey(Paths),
  /** Each value there is a document of JSON. */
  json: Schema.optionalKey(Paths),
  /** Of all results, where neither URL nor bytes tell. */
  mime: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[a-z]+\/[a-z0-9.+-]{1,60}$/u, { expected: "a media type" })
    )
  ),
  /** The vendor deletes them within 24 hours. */
  shortLived: Schema.optionalKey(Schema.Boolean),
  /** URLs of the base's origin are downloaded with the key; all others without it. */
  withKey: Schema.optionalKey(Schema.Boolean)
}

/** Of a call that returns its results at once: there is no job. */
const OwnResults = Schema.Struct({
  ...places,
  /** The body of the response is the result. */
  whole: Schema.optionalKey(Schema.Boolean)
})
export type OwnResults = typeof OwnResults.Type

/** The request that buys a job; a model may have another path and body. */
export const SubmitBody = {
  path: Schema.optionalKey(RequestPath),
  json: Schema.optionalKey(Template),
  /** Parts of a `multipart/form-data` body, used instead of `json`. A value `{"$file": path}` is the bytes of a medium. */
  form: Schema.optionalKey(Schema.Record(Schema.String, Template)),
  /** The response has the results, and nothing is polled. */
  results: Schema.optionalKey(OwnResults)
}

const positive = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))

const Submit = Schema.Struct({
  ...SubmitBody,
  method: Schema.optionalKey(Schema.Literals(["POST", "PUT"])),
  /** Gets the id of the task, for a vendor that makes one job of equal keys. */
  idempotencyHeader: Schema.optionalKey(HeaderName),
  /** What polls need of the response; `id` is the vendor's id of the job. */
  handle: Schema.optionalKey(Schema.Record(Name, SingularPath))
})

/**
 * What the gateway does with a failure. The first seven say that a refused submit has certainly bought nothing.
 * docs/reference/vendors.md#error-classes
 */
const FailureClass = Schema.Literals([
  "CONTENT",
  "FATAL_CLIENT",
  "GONE",
  "MEDIA",
  "OPERATOR",
  "RATE_LIMITED",
  "RETRYABLE",
  "FAILED",
  "TIMEOUT"
])

/** All that it names must be so. One with a status is never about a job that has failed. */
const FailureRule = Schema.Struct({
  status: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 200, maximum: 599 }))),
  /** A whole code, or the beginning of one when it ends in `*`. */
  codes: Schema.optionalKey(Words),
  when: Schema.optionalKey(Expression("condition")),
  class: FailureClass
})
export type FailureRule = typeof FailureRule.Type

const Report = Schema.Struct({ code: Schema.optionalKey(Paths), message: Paths })

const Results = Schema.Struct({
  /** A second request, for a vendor whose polls have only the state. */
  path: Schema.optionalKey(RequestPath),
  ...places
})
export type Results = typeof Results.Type

const Poll = Schema.Struct({
  path: RequestPath,
  /** The least time between two polls of a job. */
  seconds: Schema.optionalKey(positive(60))
})

/** What a poll shows; a state that is in no list is one of a running job. */
const State = Schema.Struct({
  at: SingularPath,
  /** A response without a state is one of a running job, too. */
  absent: Schema.optionalKey(Schema.Literal("running")),
  running: Words,
  done: Words,
  failed: Words
})

const ParameterName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z][A-Za-z0-9_]{0,31}$/u, { expected: "the name of a parameter" })
)

/** The vendor's list of jobs, newest first, to find a job whose submit has no outcome. */
const List = Schema.Struct({
  path: RequestPath,
  jobs: JsonPath,
  id: SingularPath,
  /** Unix seconds or milliseconds, or ISO 8601. */
  createdAt: SingularPath,
  /** How a listed job shows its request, if not with the value of the task itself. */
  shows: Schema.NonEmptyArray(Schema.Struct({ listed: SingularPath, sent: SingularPath })).check(
    Schema.isMaxLength(16)
  ),
  next: Schema.optionalKey(
    Schema.Struct({
      at: SingularPath,
      parameter: ParameterName
    })
  ),
  /** The callback address of a listed job, which names its task. */
  callback: Schema.optionalKey(SingularPath)
})

/**
 * How a callback proves that the vendor sent it: by the address, which only the vendor knows; by the signature of
 * Standard Webhooks, with a secret that the vendor shows with the key; or by fal's signature, with the keys that fal
 * publishes.
 */
const CallbackProof = Schema.Union([
  Schema.Struct({ scheme: Schema.Literal("url") }),
  Schema.Struct({
    scheme: Schema.Literal("standard-webhooks"),
    secret: Schema.Struct({ path: RequestPath, at: SingularPath })
  }),
  Schema.Struct({ scheme: Schema.Literal("fal") })
])

/** The vendor calls when a job has ended. docs/vendors-as-files.md#callbacks */
const Callbacks = Schema.Struct({
  /** The parameter of the submit with the address; absent: its template has it as `$.callback`. */
  parameter: Schema.optionalKey(ParameterName),
  proof: CallbackProof
})
export type Callbacks = typeof Callbacks.Type

/** The protocol of asynchronous jobs of a vendor. docs/vendors-as-files.md#job-vendors, ADR 0298 */
export const JobProtocol = Schema.Struct({
  /** Absent: a bearer token. */
  auth: Schema.optionalKey(JobAuth),
  /** Sent with every request. */
  headers: Schema.optionalKey(Schema.Record(HeaderName, HeaderValue)),
  submit: Submit,
  /** These three and `submit.handle` together; without them every submit has `results`. */
  poll: Schema.optionalKey(Poll),
  state: Schema.optionalKey(State),
  results: Schema.optionalKey(Results),
  cancel: Schema.optionalKey(
    Schema.Struct({
      method: Schema.Literals(["POST", "PUT", "DELETE"]),
      path: RequestPath,
      /** Statuses that say that the job has ended. */
      tooLate: Schema.optionalKey(Schema.Array(Schema.Int))
    })
  ),
  list: Schema.optionalKey(List),
  callbacks: Schema.optionalKey(Callbacks),
  /** An error in a response. */
  error: Report,
  /** Why a job has failed, in its poll; absent: as `error`. */
  jobError: Schema.optionalKey(Report),
  /** The first that applies. A refused submit to which none applies is in doubt: 3004. */
  failures: Schema.Array(FailureRule).check(Schema.isMaxLength(100)),
  /** Figures of a job that has ended, for its price. */
  usage: Schema.optionalKey(Schema.Record(Name, JsonPath)),
  /** Jobs of an account at once, unless the operator sets another limit. */
  concurrent: Schema.optionalKey(positive(100_000)),
  pollsPerSecond: Schema.optionalKey(positive(100_000)),
  /** Submits of a model. */
  submits: Schema.optionalKey(
    Schema.Struct({ calls: positive(1_000_000), seconds: positive(86_400) })
  )
})
export type JobProtocol = typeof JobProtocol.Type

/** What a vendor has whose jobs are polled. */
export interface Polled {
  readonly handle: Readonly<Record<string, string>>
  readonly poll: NonNullable<JobProtocol["poll"]>
  readonly state: NonNullable<JobProtocol["state"]>
  readonly results: Results
}

/** The parts that polls need; `undefined` if no job of the vendor is polled. */
export const polledOf = ({ poll, results, state, submit }: JobProtocol): Polled | undefined =>
  poll === undefined || results === undefined || state === undefined || submit.handle === undefined
    ? undefined
    : { handle: submit.handle, poll, state, results }
