import { Schema } from "effect"
import { Expression } from "./Expression.ts"
import { JsonPath, SingularPath } from "./JsonPath.ts"
import { Template } from "./Template.ts"

/** Headers that a file cannot set, because the connection or the body determines them. */
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

/** The name of a handle value or of a usage figure. */
const Name = Schema.String.check(
  Schema.isPattern(/^[a-z][A-Za-z0-9]{0,31}$/u, { expected: "a name such as id" })
)

/**
 * How the key is sent. Only these forms are allowed, not expressions. `jwt`: the key is `accessKey:secretKey`, and each
 * request has a bearer token that is signed with it (HS256). docs/vendors-as-files.md#authentication
 */
export const JobAuth = Schema.Union([
  Schema.Struct({ scheme: Schema.Literal("bearer") }),
  Schema.Struct({
    scheme: Schema.Literal("header"),
    name: HeaderName,
    /** Text before the key, such as `Key `. */
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

/** `{id}`, or `{model:2}`: the first two segments of the model. */
export const placeholder = /\{([^{}:]*)(?::([1-9]))?\}/gu

/** The names of the placeholders in a path, such as `model` of `{model:2}`. */
export const namesIn = (path: string): ReadonlyArray<string> =>
  Array.from(path.matchAll(placeholder), (match) => match[1] ?? "")

/** A path after the base, or `{name}`: a whole URL that the vendor named. */
export const RequestPath = Schema.String.check(
  Schema.isPattern(/^(?:\/[A-Za-z0-9._~!$&'()*+,;=:@/?%{}-]{0,300}|\{[a-z][A-Za-z0-9]{0,31}\})$/u, {
    expected: "a path such as /v1/tasks/{id}, or the name of a URL such as {statusUrl}"
  }),
  Schema.makeFilter<string>(
    (path) =>
      !/(?:^|\/)\.{1,2}(?:[/?]|$)/u.test(path) || "Expected a path without . and .. as its parts"
  ),
  Schema.makeFilter<string>(
    (path) =>
      !/[{}]/u.test(path.replaceAll(placeholder, "")) || "Expected names such as {id} or {model:2}"
  )
)

const Paths = Schema.NonEmptyArray(JsonPath).check(Schema.isMaxLength(8))
const Words = Schema.NonEmptyArray(Schema.NonEmptyString).check(Schema.isMaxLength(32))

/** The paths of the results in a response. The first path that selects any is used. */
const places = {
  /** Paths of URLs, of lists of URLs, or of objects with `url`; or the usual fields of the kind of result. */
  urls: Schema.optionalKey(Schema.Union([Paths, Schema.Literal("usual")])),
  base64: Schema.optionalKey(Paths),
  /** Paths of values, each of which is a JSON document. */
  json: Schema.optionalKey(Paths),
  /** The media type of all results, used if neither URL nor bytes show it. */
  mime: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[a-z]+\/[a-z0-9.+-]{1,60}$/u, { expected: "a media type" })
    )
  ),
  /** Whether the vendor deletes the results within 24 hours. */
  shortLived: Schema.optionalKey(Schema.Boolean),
  /** Whether URLs of the base's origin are downloaded with the key. All other URLs are downloaded without it. */
  withKey: Schema.optionalKey(Schema.Boolean)
}

/** The results of a call that returns them at once, without a job. */
const OwnResults = Schema.Struct({
  ...places,
  /** Whether the whole response body is the result. */
  whole: Schema.optionalKey(Schema.Boolean)
})
export type OwnResults = typeof OwnResults.Type

/**
 * A URL that the vendor names and that gets the key: if it names none of the base's origin, the URL of a path after the
 * base.
 */
const OwnUrl = Schema.Struct({ url: SingularPath, or: RequestPath })

/** The request that buys a job; a model may have another path and body. */
export const SubmitBody = {
  path: Schema.optionalKey(RequestPath),
  json: Schema.optionalKey(Template),
  /**
   * Parts of a `multipart/form-data` body, used instead of `json`. The value `{"$file": path}` stands for the bytes of
   * a medium.
   */
  form: Schema.optionalKey(Schema.Record(Schema.String, Template)),
  /** The response contains the results, so nothing is polled. */
  results: Schema.optionalKey(OwnResults)
}

const positive = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))

/**
 * A form of a model's id, such as `{name:2}:{version}`. `{name:2}` stands for two segments, `{version}` for one. A name
 * is a whole segment, so that a form is compared in linear time.
 */
const Form = Schema.Struct({
  model: Schema.String.check(
    Schema.isPattern(
      /^(?:[A-Za-z0-9_.-]{1,64}|\{[a-z][A-Za-z0-9]{0,31}(?::[1-9])?\})(?:[/:](?:[A-Za-z0-9_.-]{1,64}|\{[a-z][A-Za-z0-9]{0,31}(?::[1-9])?\})){0,15}$/u,
      { expected: "a form such as {name:2}:{version}" }
    ),
    Schema.makeFilter<string>(
      (form) =>
        new Set(namesIn(form)).size === namesIn(form).length || "Expected each name only once"
    )
  ),
  path: RequestPath
})

const ParameterName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z][A-Za-z0-9_]{0,31}$/u, { expected: "the name of a parameter" })
)

const Submit = Schema.Struct({
  ...SubmitBody,
  method: Schema.optionalKey(Schema.Literals(["POST", "PUT"])),
  /** Forms of the models' ids, for a vendor whose path depends on them. The first that fits names parts of the id. */
  forms: Schema.optionalKey(Schema.NonEmptyArray(Form).check(Schema.isMaxLength(8))),
  /** Larger media without a public URL are uploaded first, and sent as the URL in the response. */
  uploads: Schema.optionalKey(
    Schema.Struct({
      /** Bytes. */
      above: Schema.Int.check(Schema.isGreaterThan(0)),
      path: RequestPath,
      /** The part of the form that has the file. */
      part: ParameterName,
      at: SingularPath
    })
  ),
  /** A header that carries the task's id, for a vendor that creates only one job per key. */
  idempotencyHeader: Schema.optionalKey(HeaderName),
  /** The values of the response that later requests need. `id` is the vendor's id of the job. */
  handle: Schema.optionalKey(Schema.Record(Name, Schema.Union([SingularPath, OwnUrl])))
})

/**
 * What the gateway does with a failure. The first seven classes say that a refused submit has certainly bought nothing.
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

/**
 * A rule applies if all its conditions are met. A rule with a status never applies to a failed job. A submit to which
 * `FAILED` or `TIMEOUT` applies is in doubt.
 */
const FailureRule = Schema.Struct({
  status: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 200, maximum: 599 }))),
  /** A whole code, or a prefix if it ends in `*`. */
  codes: Schema.optionalKey(Words),
  when: Schema.optionalKey(Expression("condition")),
  class: FailureClass
})
export type FailureRule = typeof FailureRule.Type

/** A submit that was accepted may have bought a job, whatever its response says. */
export const acceptedWithoutJob: FailureRule = {
  when: 'request == "submit" && status < 300',
  class: "FAILED"
}

/** What a status means where no code or message says more. They stand last, because the first rule that applies decides. */
export const usualStatuses: ReadonlyArray<FailureRule> = [
  // A missing model of a submit, a missing job of a poll (404, 410)
  ...[401, 402, 403, 404, 410].map((status) => ({ status, class: "OPERATOR" as const })),
  { status: 429, class: "RATE_LIMITED" },
  { when: "status >= 500", class: "RETRYABLE" },
  { when: "status >= 400", class: "FATAL_CLIENT" }
]

const report = { code: Schema.optionalKey(Paths), message: Paths }

const ReportedError = Schema.Struct({
  ...report,
  /** The header that has the code if the body has none. */
  codeHeader: Schema.optionalKey(HeaderName),
  requestIdHeader: Schema.optionalKey(HeaderName),
  /**
   * A refusal without code and message comes from an intermediary, and its status decides whether a submit is in doubt.
   * docs/reference/vendors.md#error-classes
   */
  absent: Schema.optionalKey(Schema.Literal("status"))
})

const Results = Schema.Struct({
  /** The path of a second request, for a vendor whose polls return only the state. */
  path: Schema.optionalKey(RequestPath),
  /** The path of the bytes of the only result, which needs the key. */
  content: Schema.optionalKey(RequestPath),
  /** The value below which the other paths are, and the fields that a model names. */
  at: Schema.optionalKey(SingularPath),
  ...places,
  /** A flag of each file, or one of all. A flagged file was refused for its content, so it is left out. */
  flagged: Schema.optionalKey(SingularPath)
})
export type Results = typeof Results.Type

const Poll = Schema.Struct({
  path: RequestPath,
  /** The shortest interval between two polls of a job. */
  seconds: Schema.optionalKey(positive(60))
})

/** The states that a poll can return. A state in none of the lists means that the job is running. */
const State = Schema.Struct({
  at: SingularPath,
  /** A response without a state also means that the job is running. */
  absent: Schema.optionalKey(Schema.Literal("running")),
  running: Words,
  done: Words,
  failed: Words,
  /** A job whose state is one of `done` has failed if its poll has a value here. */
  failure: Schema.optionalKey(SingularPath)
})

/** Where a poll says how much of a running job is done, and the figure of a job that is done. */
const ReportedProgress = Schema.Struct({
  at: SingularPath,
  of: Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))
})

/** A value of a listed job and the one that was sent: its path, or an expression that computes it. */
const Shown = Schema.Struct({
  listed: SingularPath,
  sent: Schema.Union([SingularPath, Schema.Struct({ $cel: Expression("value") })])
})

/** The next page of a list: its URL or, with a parameter, its cursor. */
const Next = Schema.Struct({
  parameter: Schema.optionalKey(ParameterName),
  /** If absent, the cursor is the id of the last job. */
  at: Schema.optionalKey(SingularPath),
  /** Whether there is a next page. If absent, there is one if the page before has a cursor. */
  more: Schema.optionalKey(SingularPath)
}).check(
  Schema.makeFilter(
    ({ at, parameter }) => at !== undefined || parameter !== undefined || "Expected at or parameter"
  )
)

/** The vendor's list of jobs, newest first. It is used to find a job whose submit got no response. */
const List = Schema.Struct({
  path: RequestPath,
  jobs: JsonPath,
  id: SingularPath,
  /** Unix seconds or milliseconds, or ISO 8601. */
  createdAt: SingularPath,
  /** How a listed job shows its request, if it does not show the task's id. Of objects, the prompt has to be the same. */
  shows: Schema.NonEmptyArray(Shown).check(Schema.isMaxLength(16)),
  /** How it shows its model, which excludes other jobs. With `exact`, a job that shows none is excluded, too. */
  model: Schema.optionalKey(
    Schema.Array(Schema.Struct({ ...Shown.fields, exact: Schema.optionalKey(Schema.Boolean) }))
  ),
  next: Schema.optionalKey(Next),
  /** The callback URL of a listed job, which identifies its task. */
  callback: Schema.optionalKey(SingularPath)
})

/**
 * How a callback is authenticated: by its URL, which only the vendor knows; by a Standard Webhooks signature whose
 * secret the vendor returns to requests with the key; or by fal's signature with fal's published keys.
 */
const CallbackProof = Schema.Union([
  Schema.Struct({ scheme: Schema.Literal("url") }),
  Schema.Struct({
    scheme: Schema.Literal("standard-webhooks"),
    secret: Schema.Struct({ path: RequestPath, at: SingularPath })
  }),
  Schema.Struct({ scheme: Schema.Literal("fal") })
])

/** The vendor sends a callback when a job has ended. docs/vendors-as-files.md#callbacks */
const Callbacks = Schema.Struct({
  /**
   * The query parameter of the submit that carries the callback URL. If absent, the submit's template contains it as
   * `$.callback`.
   */
  parameter: Schema.optionalKey(ParameterName),
  proof: CallbackProof
})
export type Callbacks = typeof Callbacks.Type

/** A vendor's protocol for asynchronous jobs. docs/vendors-as-files.md#job-vendors, ADR 0298 */
export const JobProtocol = Schema.Struct({
  /** If absent, the key is sent as a bearer token. */
  auth: Schema.optionalKey(JobAuth),
  /** Sent with every request. */
  headers: Schema.optionalKey(Schema.Record(HeaderName, HeaderValue)),
  submit: Submit,
  /** Set together with the next two and `submit.handle`. Without them, every submit must have `results`. */
  poll: Schema.optionalKey(Poll),
  state: Schema.optionalKey(State),
  progress: Schema.optionalKey(ReportedProgress),
  results: Schema.optionalKey(Results),
  cancel: Schema.optionalKey(
    Schema.Struct({
      method: Schema.Literals(["POST", "PUT", "DELETE"]),
      path: RequestPath,
      /** Statuses of a cancel that mean that the job has already ended. */
      tooLate: Schema.optionalKey(Schema.Array(Schema.Int)),
      /** The states of a cancelled job, if its response shows the state. */
      states: Schema.optionalKey(Words)
    })
  ),
  list: Schema.optionalKey(List),
  callbacks: Schema.optionalKey(Callbacks),
  /** Where a response contains its error. */
  error: ReportedError,
  /** Where a poll says why a job has failed. If absent, as `error`. */
  jobError: Schema.optionalKey(Schema.Struct(report)),
  /** The first rule that applies decides. If none applies, a refused submit is in doubt: 3004. */
  failures: Schema.Array(FailureRule).check(Schema.isMaxLength(100)),
  /** Figures of an ended job, for its price. */
  usage: Schema.optionalKey(Schema.Record(Name, JsonPath)),
  /** The most concurrent jobs of an account, unless the operator sets another limit. */
  concurrent: Schema.optionalKey(positive(100_000)),
  pollsPerSecond: Schema.optionalKey(positive(100_000)),
  /** The rate of submits per model. */
  submits: Schema.optionalKey(
    Schema.Struct({ calls: positive(1_000_000), seconds: positive(86_400) })
  )
})
export type JobProtocol = typeof JobProtocol.Type

/** The parts of a protocol whose jobs are polled. */
export interface Polled {
  readonly handle: NonNullable<JobProtocol["submit"]["handle"]>
  readonly poll: NonNullable<JobProtocol["poll"]>
  readonly state: NonNullable<JobProtocol["state"]>
  readonly progress?: JobProtocol["progress"]
  readonly results: Results
}

/** The parts that polls need; `undefined` if the vendor has no polled jobs. */
export const polledOf = ({
  poll,
  progress,
  results,
  state,
  submit
}: JobProtocol): Polled | undefined =>
  poll === undefined || results === undefined || state === undefined || submit.handle === undefined
    ? undefined
    : { handle: submit.handle, poll, state, progress, results }
