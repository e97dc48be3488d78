import { Clock, Effect, Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { emptyResult, jobFailed, readAs, unreadableError } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import { flatInput } from "../FlatInput.ts"
import { optionalField } from "../OptionalField.ts"
import {
  documentsAt,
  figuresOf,
  filesAt,
  resultForm,
  resultFormOf,
  usualFields
} from "../OutputMedia.ts"
import { pollIntervalAtAge, submitTimeout } from "../Polling.ts"
import { sameOriginJob, sameOriginUrl } from "../upstream/SameOrigin.ts"
import { callVendor, failResponse, send } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type {
  CancelOutcome,
  Handle,
  Progress,
  ResultItem,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import type { VendorResponse } from "../VendorHttp.ts"
import { scheme } from "./FalCallbacks.ts"

const Created = Schema.Struct({
  request_id: Schema.NonEmptyString,
  status_url: optionalField(Schema.String),
  response_url: optionalField(Schema.String),
  cancel_url: optionalField(Schema.String)
})

const Status = Schema.Struct({
  status: Schema.String,
  error: optionalField(Schema.String),
  error_type: optionalField(Schema.String)
})

const Job = Schema.Struct({
  requestId: Schema.NonEmptyString,
  statusUrl: Schema.String,
  responseUrl: Schema.String,
  cancelUrl: Schema.String,
  submittedAtMillis: Schema.Finite,
  output: Schema.optionalKey(Schema.Array(Schema.String)),
  ...resultForm
})
type Job = typeof Job.Type
const jobOf = sameOriginJob(Job, ({ cancelUrl, responseUrl, statusUrl }) => [
  statusUrl,
  responseUrl,
  cancelUrl
])

const flaggedCode = "has_nsfw_concepts"

/** Matches the `type` of the first item of `detail`, or its text. docs/reference/vendors.md#fal-errors */
const rules: ReadonlyArray<FaultRule> = [
  { codes: ["content_policy_violation", flaggedCode], class: "CONTENT" },
  { codes: ["file_download_error", "image_load_error", "file_too_large"], class: "MEDIA" },
  { codes: ["EndpointDeprecated"], class: "GONE" },
  // Matched only at the beginning: the rest of a message may quote the client
  { message: /^(?:exhausted balance|user is locked|billing)/iu, class: "OPERATOR" },
  { codes: ["generation_timeout", "request_timeout", "startup_timeout"], class: "TIMEOUT" },
  { codes: ["internal_server_error", "runner_*", "downstream_service_*"], class: "RETRYABLE" },
  { status: 422, class: "FATAL_CLIENT" }
]

const Detail = Schema.Struct({
  msg: optionalField(Schema.String),
  type: optionalField(Schema.String)
})
const Deprecated = Schema.Struct({ error: Schema.String, message: optionalField(Schema.String) })
const Failure = Schema.Struct({
  detail: Schema.Union([Schema.String, Schema.Array(Detail), Deprecated])
})
const read = readAs(Failure)

const detailOf = (detail: (typeof Failure.Type)["detail"], code: string | undefined) => {
  if (typeof detail === "string") return { code, message: detail }
  if ("error" in detail) return { code: detail.error, message: detail.message }
  return { code: detail[0]?.type, message: detail[0]?.msg }
}

const reportedError = (response: VendorResponse): ReportedError | undefined =>
  Option.getOrUndefined(
    Option.map(read(response), ({ detail }) => ({
      requestId: response.headers["x-fal-request-id"],
      ...detailOf(detail, response.headers["x-fal-error-type"])
    }))
  )

const readAnything = readAs(Schema.Unknown)

/** docs/reference/vendors.md#fal-queue */
export const make = (context: AdapterContext): VendorAccount => {
  const { account, accountId, auth, observeResponse, http } = context
  const base = account.baseUrl
  const api: VendorApi = { http, headers: auth, rules, reportedError, observeResponse }
  return {
    accountId,
    submit: Effect.fn("FalQueue.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const created = yield* callVendor(api, {
        purpose: "submit",
        model: request.upstreamModel,
        method: "POST",
        url: `${base}/${request.upstreamModel}${callbackIn(request)}`,
        json: yield* flatInput(request),
        timeout: submitTimeout,
        schema: Created
      })
      const submittedAtMillis = yield* Clock.currentTimeMillis
      const handle = {
        ...urlsOf(base, request.upstreamModel, created),
        output: request.output ?? usualFields[request.result],
        ...resultFormOf(request),
        submittedAtMillis
      }
      return { _tag: "Accepted", handle, pollAfter: pollIntervalAtAge(0) }
    }),
    poll: (handle) => Effect.flatMap(jobOf(base, handle), (job) => poll(api, job)),
    cancel: Effect.fn("FalQueue.cancel")(function* (handle: Handle) {
      const { cancelUrl: url } = yield* jobOf(base, handle)
      const call = { purpose: "query", method: "PUT", url, schema: Schema.Unknown } as const
      const response = yield* send(api, call)
      if (response.status === 400) return "TooLate" satisfies CancelOutcome
      if (response.status >= 300) return yield* failResponse(api, "query", response)
      return "Canceled" satisfies CancelOutcome
    }),
    callbacks: scheme(account.jwksUrl)
  }
}

const callbackIn = ({ callbackUrl: url }: SubmitRequest): string =>
  url === undefined ? "" : `?${new URLSearchParams({ fal_webhook: url }).toString()}`

const urlsOf = (base: string, model: string, created: typeof Created.Type) => {
  const app = model.split("/").slice(0, 2).join("/")
  const own = `${base}/${app}/requests/${encodeURIComponent(created.request_id)}`
  return {
    requestId: created.request_id,
    statusUrl: sameOriginUrl(base, created.status_url, `${own}/status`),
    responseUrl: sameOriginUrl(base, created.response_url, own),
    cancelUrl: sameOriginUrl(base, created.cancel_url, `${own}/cancel`)
  }
}

const poll = (api: VendorApi, job: Job): Effect.Effect<Progress, VendorError> =>
  Effect.flatMap(
    callVendor(api, { purpose: "query", url: job.statusUrl, schema: Status }),
    (status): Effect.Effect<Progress, VendorError> =>
      status.status === "COMPLETED"
        ? ended(api, job, status)
        : Effect.map(Clock.currentTimeMillis, (now) => ({
            _tag: "Running",
            pollAfter: pollIntervalAtAge(now - job.submittedAtMillis)
          }))
  )

const ended = Effect.fnUntraced(function* (
  api: VendorApi,
  job: Job,
  { error, error_type: code }: typeof Status.Type
): Effect.fn.Return<Progress, VendorError> {
  const requestId = job.requestId
  if (error !== undefined) {
    return yield* jobFailed(rules, { code, message: error, requestId })
  }
  const call = { purpose: "query", url: job.responseUrl, schema: Schema.Unknown } as const
  const response = yield* send(api, call)
  if (response.status !== 200) return yield* failureIn(api, response, requestId)
  const output = readAnything(response)
  if (Option.isNone(output)) return yield* unreadableError("query", response)
  return yield* resultOf(output.value, job)
})

const Flags = Schema.Struct({
  has_nsfw_concepts: optionalField(Schema.Union([Schema.Boolean, Schema.Array(Schema.Boolean)]))
})
const decodeFlags = Schema.decodeUnknownOption(Flags)

/**
 * The safety flag of each file, or one flag for all files. A flagged file is blank, because its content was refused.
 */
const flagsIn = (output: unknown): ((index: number) => boolean) => {
  const flags = Option.getOrUndefined(decodeFlags(output))?.has_nsfw_concepts
  return (index) => (typeof flags === "object" ? flags[index] === true : flags === true)
}

/** docs/reference/vendors.md#fal-errors */
const resultOf = (output: unknown, job: Job): Effect.Effect<Progress, VendorError> => {
  const { output: fields = Object.values(usualFields).flat(), requestId, result } = job
  const done = (items: ReadonlyArray<ResultItem>) =>
    Effect.succeed({ _tag: "Done", result: { items, ...figuresOf(job) } } as const)
  if (result === "documents") {
    const documents = documentsAt(output, fields)
    return documents.length > 0 ? done(documents) : Effect.fail(emptyResult({ requestId }))
  }
  const isFlagged = flagsIn(output)
  const files = filesAt(output, fields, false)
  const items = files.filter((_, index) => !isFlagged(index))
  if (items.length > 0) return done(items)
  const flagged = { code: flaggedCode, message: "The result was flagged as unsafe", requestId }
  return Effect.fail(isFlagged(0) ? jobFailed(rules, flagged) : emptyResult({ requestId }))
}

/** The error at the response URL of a completed job: a failure of the job if the vendor reports it. */
const failureIn = Effect.fnUntraced(function* (
  api: VendorApi,
  response: VendorResponse,
  requestId: string
) {
  const reported = reportedError(response)
  const isAboutTheJob = reported !== undefined && ![401, 403, 429].includes(response.status)
  if (!isAboutTheJob) return yield* failResponse(api, "query", response)
  return yield* jobFailed(response.status === 422 ? [...rules, { class: "FATAL_CLIENT" }] : rules, {
    ...reported,
    requestId
  })
})
