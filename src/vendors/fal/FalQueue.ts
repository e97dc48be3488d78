import { Clock, Duration, Effect, Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { empty, jobFailed, readAs, unreadable } from "../Faults.ts"
import { flatInput, mediaIn } from "../FlatInput.ts"
import { maybe } from "../OptionalField.ts"
import { ownJob, ownUrl } from "../OwnUrls.ts"
import { waitAtAge } from "../Polling.ts"
import { ask, refusalIn, send } from "../VendorCall.ts"
import type { Dialect } from "../VendorCall.ts"
import type {
  CancelOutcome,
  Handle,
  Progress,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import { scheme } from "./FalCallbacks.ts"
import { refusalOf, rules } from "./FalFaults.ts"

const createTimeout = Duration.seconds(60)

const Created = Schema.Struct({
  request_id: Schema.NonEmptyString,
  status_url: maybe(Schema.String),
  response_url: maybe(Schema.String),
  cancel_url: maybe(Schema.String)
})

const Status = Schema.Struct({
  status: Schema.String,
  error: maybe(Schema.String),
  error_type: maybe(Schema.String)
})

const Job = Schema.Struct({
  requestId: Schema.NonEmptyString,
  statusUrl: Schema.String,
  responseUrl: Schema.String,
  cancelUrl: Schema.String,
  submittedAtMillis: Schema.Finite
})
type Job = typeof Job.Type
const jobOf = ownJob(Job, ({ cancelUrl, responseUrl, statusUrl }) => [
  statusUrl,
  responseUrl,
  cancelUrl
])

const readAnything = readAs(Schema.Unknown)

/** F1: fal's queue (vendors.md A5). */
export const make = (line: AdapterContext): VendorAccount => {
  const { account, accountId, auth, observeResponse, http } = line
  const base = account.baseUrl
  const dialect: Dialect = { http, headers: auth, rules, refusalOf, observeResponse }
  return {
    accountId,
    submit: Effect.fn("FalQueue.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const created = yield* ask(dialect, {
        purpose: "submit",
        method: "POST",
        url: `${base}/${request.upstreamModel}${callbackIn(request)}`,
        json: yield* flatInput(request),
        timeout: createTimeout,
        schema: Created
      })
      const submittedAtMillis = yield* Clock.currentTimeMillis
      const handle = { ...urlsOf(base, request.upstreamModel, created), submittedAtMillis }
      return { _tag: "Accepted", handle, pollAfter: waitAtAge(0) }
    }),
    poll: Effect.fn("FalQueue.poll")(function* (handle: Handle) {
      return yield* poll(dialect, yield* jobOf(base, handle))
    }),
    cancel: Effect.fn("FalQueue.cancel")(function* (handle: Handle) {
      const { cancelUrl: url } = yield* jobOf(base, handle)
      const call = { purpose: "ask", method: "PUT", url, schema: Schema.Unknown } as const
      const answer = yield* send(dialect, call)
      if (answer.status === 400) return "TooLate" satisfies CancelOutcome
      if (answer.status >= 300) return yield* refusalIn(dialect, "ask", answer)
      return "Canceled" satisfies CancelOutcome
    }),
    reconcile: () => Effect.succeed([]),
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
    statusUrl: ownUrl(base, created.status_url, `${own}/status`),
    responseUrl: ownUrl(base, created.response_url, own),
    cancelUrl: ownUrl(base, created.cancel_url, `${own}/cancel`)
  }
}

const poll = Effect.fnUntraced(function* (
  dialect: Dialect,
  job: Job
): Effect.fn.Return<Progress, VendorError> {
  const {
    error,
    error_type: code,
    status
  } = yield* ask(dialect, {
    purpose: "ask",
    url: job.statusUrl,
    schema: Status
  })
  const requestId = job.requestId
  if (status !== "COMPLETED") {
    const age = (yield* Clock.currentTimeMillis) - job.submittedAtMillis
    return { _tag: "Running", pollAfter: waitAtAge(age) }
  }
  if (error !== undefined) {
    return yield* jobFailed(rules, { code, message: error, requestId })
  }
  const call = { purpose: "ask", url: job.responseUrl, schema: Schema.Unknown } as const
  const answer = yield* send(dialect, call)
  if (answer.status !== 200) return yield* failureIn(dialect, answer, requestId)
  const output = readAnything(answer)
  if (Option.isNone(output)) return yield* unreadable("ask", answer)
  const items = mediaIn(output.value, false)
  return items.length > 0 ? { _tag: "Done", result: { items } } : yield* empty({ requestId })
})

/** The result of a completed job is its failure, when the vendor says so in its own words. */
const failureIn = Effect.fnUntraced(function* (
  dialect: Dialect,
  answer: Parameters<typeof refusalOf>[0],
  requestId: string
) {
  const refusal = refusalOf(answer)
  const isAboutTheJob = refusal !== undefined && ![401, 403, 429].includes(answer.status)
  if (!isAboutTheJob) return yield* refusalIn(dialect, "ask", answer)
  return yield* jobFailed(answer.status === 422 ? [...rules, { class: "FATAL_CLIENT" }] : rules, {
    ...refusal,
    requestId
  })
})
