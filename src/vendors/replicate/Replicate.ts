import { Clock, Effect, Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../BaseUrl.ts"
import { emptyResult, jobFailed, readAs } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import { flatInput } from "../FlatInput.ts"
import { optionalField } from "../OptionalField.ts"
import {
  documentsAt,
  figuresOf,
  filesAt,
  filesIn,
  resultForm,
  resultFormOf
} from "../OutputMedia.ts"
import { pollIntervalAtAge, submitTimeout } from "../Polling.ts"
import { sameOriginJob, sameOriginUrl } from "../upstream/SameOrigin.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type {
  CancelOutcome,
  Handle,
  ListedJob,
  ListQuery,
  Progress,
  ResultItem,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import type { VendorResponse } from "../VendorHttp.ts"
import { scheme } from "./ReplicateCallbacks.ts"
import { inlineOrUpload } from "./ReplicateFiles.ts"
import { deploymentOf, likeness, listed } from "./ReplicateList.ts"

/** The vendor has no error codes, so the message decides. docs/reference/vendors.md#replicate-errors */
export const rules: ReadonlyArray<FaultRule> = [
  { message: /nsfw|flagged as sensitive|safety (?:checker|filter)|E005/iu, class: "CONTENT" },
  { message: /^the specified version does not exist/iu, class: "GONE" },
  { message: /failed to (?:download|fetch)/iu, class: "MEDIA" },
  { message: /prediction (?:interrupted|timed out)/iu, class: "TIMEOUT" },
  // This message may quote the client
  { status: 400, class: "FATAL_CLIENT" },
  { status: 422, class: "FATAL_CLIENT" },
  { message: /(?:unpaid|insufficient credit|billing|spend limit)/iu, class: "OPERATOR" }
]

const Failure = Schema.Struct({ detail: Schema.String })
const read = readAs(Failure)

const reportedError = (response: VendorResponse): ReportedError | undefined =>
  Option.getOrUndefined(Option.map(read(response), ({ detail }) => ({ message: detail })))

const Prediction = Schema.Struct({
  id: Schema.NonEmptyString,
  status: Schema.String,
  output: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.Unknown),
  urls: optionalField(
    Schema.Struct({
      get: optionalField(Schema.String),
      cancel: optionalField(Schema.String)
    })
  )
})
type Prediction = typeof Prediction.Type

const Job = Schema.Struct({
  id: Schema.NonEmptyString,
  getUrl: Schema.String,
  cancelUrl: Schema.String,
  submittedAtMillis: Schema.Finite,
  output: Schema.optionalKey(Schema.Array(Schema.String)),
  ...resultForm
})
type Job = typeof Job.Type
const jobOf = sameOriginJob(Job, ({ cancelUrl, getUrl }) => [getUrl, cancelUrl])

/**
 * The endpoint and version of an upstream model. `owner/name` is an official model, `owner/name:version` or a bare
 * version is that version of a model, `deployments/owner/name` is a deployment.
 */
const target = (upstreamModel: string) => {
  const [model = "", version] = upstreamModel.split(":")
  if (version !== undefined) return { path: "/predictions", fields: { version } }
  if (deploymentOf(model) !== undefined) return { path: `/${model}/predictions`, fields: {} }
  return model.includes("/")
    ? { path: `/models/${model}/predictions`, fields: {} }
    : { path: "/predictions", fields: { version: model } }
}

/**
 * Jobs that are polled. The vendor deletes results after an hour, so they are always copied.
 * docs/reference/vendors.md#replicate-predictions
 */
export const make = (context: AdapterContext): VendorAccount => {
  const { account, accountId, auth, observeResponse, http } = context
  const base = withVersion(account.baseUrl, "/v1")
  const api: VendorApi = { http, headers: auth, rules, reportedError, observeResponse }
  const inline = inlineOrUpload(api, base)
  return {
    accountId,
    submit: Effect.fn("Replicate.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const { fields, path } = target(request.upstreamModel)
      const prediction = yield* callVendor(api, {
        purpose: "submit",
        model: request.upstreamModel,
        method: "POST",
        url: `${base}${path}`,
        json: { ...fields, input: yield* flatInput(request, inline), ...callbackIn(request) },
        timeout: submitTimeout,
        schema: Prediction
      })
      const submittedAtMillis = yield* Clock.currentTimeMillis
      const handle = { ...urlsOf(base, prediction), ...outputOf(request), submittedAtMillis }
      return { _tag: "Accepted", handle, pollAfter: pollIntervalAtAge(0) }
    }),
    poll: Effect.fnUntraced(function* (handle: Handle) {
      const job = yield* jobOf(base, handle)
      const call = { purpose: "query", url: job.getUrl, schema: Prediction } as const
      return yield* progressOf(yield* callVendor(api, call), job, yield* Clock.currentTimeMillis)
    }),
    cancel: Effect.fn("Replicate.cancel")(function* (handle: Handle) {
      const { cancelUrl: url } = yield* jobOf(base, handle)
      const call = { purpose: "query", method: "POST", url, schema: Prediction } as const
      const { status } = yield* callVendor(api, call)
      return (isCanceled(status) ? "Canceled" : "TooLate") satisfies CancelOutcome
    }),
    list: Effect.fn("Replicate.list")(function* (query: ListQuery) {
      const found = yield* listed(api, base, query)
      return found.map((it): ListedJob => {
        const { created_at: at, id, webhook } = it
        const submittedAtMillis = Date.parse(at)
        const job: ListedJob = {
          jobId: id,
          createdAtMillis: submittedAtMillis,
          compare: (request) => likeness(request, it),
          handle: (request) => ({
            ...urlsOf(base, { id }),
            ...outputOf(request),
            submittedAtMillis
          })
        }
        return webhook === undefined ? job : Object.assign(job, { callbackUrl: webhook })
      })
    }),
    callbacks: scheme(api, base)
  }
}

/** Requests one callback, when the job has ended. */
const callbackIn = ({ callbackUrl: webhook }: SubmitRequest) =>
  webhook === undefined ? {} : { webhook, webhook_events_filter: ["completed"] }

const urlsOf = (base: string, { id, urls }: Pick<Prediction, "id" | "urls">) => {
  const own = `${base}/predictions/${encodeURIComponent(id)}`
  return {
    id,
    getUrl: sameOriginUrl(base, urls?.get, own),
    cancelUrl: sameOriginUrl(base, urls?.cancel, `${own}/cancel`)
  }
}

/** For most models the whole output is the result; for the others, the catalog names the fields. */
const outputOf = (request: SubmitRequest) => ({
  ...(request.output === undefined ? {} : { output: request.output }),
  ...resultFormOf(request)
})

const itemsIn = (output: unknown, job: Job): ReadonlyArray<ResultItem> => {
  if (job.result === "documents") return documentsAt(output, job.output ?? [])
  return job.output === undefined ? filesIn(output, true) : filesAt(output, job.output, true)
}

const isCanceled = (status: string): boolean => status === "canceled" || status === "aborted"

const progressOf = (
  { error, id: requestId, output, status }: Prediction,
  job: Job,
  nowMillis: number
): Effect.Effect<Progress, VendorError> => {
  if (status === "succeeded") {
    const items = itemsIn(output, job)
    return items.length > 0
      ? Effect.succeed({ _tag: "Done", result: { items, ...figuresOf(job) } })
      : Effect.fail(emptyResult({ requestId }))
  }
  if (status === "failed" || isCanceled(status)) {
    const message = typeof error === "string" ? error : `The job was ${status} upstream`
    return Effect.fail(jobFailed(rules, { message, requestId }))
  }
  return Effect.succeed({
    _tag: "Running",
    pollAfter: pollIntervalAtAge(nowMillis - job.submittedAtMillis)
  })
}
