import { Clock, Duration, Effect, Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../Bases.ts"
import { empty, jobFailed, readAs } from "../Faults.ts"
import type { FaultRule, Refusal } from "../Faults.ts"
import { flatInput, mediaIn } from "../FlatInput.ts"
import { maybe } from "../OptionalField.ts"
import { ownJob, ownUrl } from "../OwnUrls.ts"
import { waitAtAge } from "../Polling.ts"
import { ask } from "../VendorCall.ts"
import type { Dialect } from "../VendorCall.ts"
import type {
  CancelOutcome,
  Candidate,
  Handle,
  Progress,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import type { VendorAnswer } from "../VendorHttp.ts"
import { scheme } from "./ReplicateCallbacks.ts"
import { listed } from "./ReplicateList.ts"

const createTimeout = Duration.seconds(60)

/** vendors.md A5, Replicate: there are no codes, so the words decide. */
export const rules: ReadonlyArray<FaultRule> = [
  { says: /nsfw|flagged as sensitive|safety (?:checker|filter)|E005/iu, class: "CONTENT" },
  { says: /(?:unpaid|insufficient credit|billing|spend limit)/iu, class: "OPERATOR" },
  { says: /failed to (?:download|fetch)/iu, class: "MEDIA" },
  { says: /prediction (?:interrupted|timed out)/iu, class: "TIMEOUT" }
]

const Failure = Schema.Struct({ detail: Schema.String })
const read = readAs(Failure)

const refusalOf = (answer: VendorAnswer): Refusal | undefined =>
  Option.getOrUndefined(Option.map(read(answer), ({ detail }) => ({ message: detail })))

const Prediction = Schema.Struct({
  id: Schema.NonEmptyString,
  status: Schema.String,
  output: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.Unknown),
  urls: maybe(
    Schema.Struct({
      get: maybe(Schema.String),
      cancel: maybe(Schema.String)
    })
  )
})
type Prediction = typeof Prediction.Type

const Job = Schema.Struct({
  id: Schema.NonEmptyString,
  getUrl: Schema.String,
  cancelUrl: Schema.String,
  submittedAtMillis: Schema.Finite
})
const jobOf = ownJob(Job, ({ cancelUrl, getUrl }) => [getUrl, cancelUrl])

/** `owner/name` runs the model's own version; `owner/name:version` or a bare version that one. */
const target = (upstreamModel: string) => {
  const [model = "", version] = upstreamModel.split(":")
  if (version !== undefined) return { path: "/predictions", fields: { version } }
  return model.includes("/")
    ? { path: `/models/${model}/predictions`, fields: {} }
    : { path: "/predictions", fields: { version: model } }
}

/** F1: Replicate's predictions (vendors.md A5). Results are gone after an hour, so they are copied. */
export const make = (line: AdapterContext): VendorAccount => {
  const { account, accountId, auth, observeResponse, http } = line
  const base = withVersion(account.baseUrl, "/v1")
  const dialect: Dialect = { http, headers: auth, rules, refusalOf, observeResponse }
  return {
    accountId,
    submit: Effect.fn("Replicate.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const { fields, path } = target(request.upstreamModel)
      const prediction = yield* ask(dialect, {
        purpose: "submit",
        method: "POST",
        url: `${base}${path}`,
        json: { ...fields, input: yield* flatInput(request), ...callbackIn(request) },
        timeout: createTimeout,
        schema: Prediction
      })
      const submittedAtMillis = yield* Clock.currentTimeMillis
      const handle = { ...urlsOf(base, prediction), submittedAtMillis }
      return { _tag: "Accepted", handle, pollAfter: waitAtAge(0) }
    }),
    poll: Effect.fn("Replicate.poll")(function* (handle: Handle) {
      const { getUrl: url, submittedAtMillis } = yield* jobOf(base, handle)
      const prediction = yield* ask(dialect, { purpose: "ask", url, schema: Prediction })
      return yield* progressOf(prediction, (yield* Clock.currentTimeMillis) - submittedAtMillis)
    }),
    cancel: Effect.fn("Replicate.cancel")(function* (handle: Handle) {
      const { cancelUrl: url } = yield* jobOf(base, handle)
      const call = { purpose: "ask", method: "POST", url, schema: Prediction } as const
      const { status } = yield* ask(dialect, call)
      return (isCanceled(status) ? "Canceled" : "TooLate") satisfies CancelOutcome
    }),
    canList: true,
    reconcile: Effect.fn("Replicate.reconcile")(function* (
      request: SubmitRequest,
      startedAtMillis: number
    ) {
      const found = yield* listed(dialect, base, request, startedAtMillis, createTimeout)
      return found.map(({ created_at: at, id }): Candidate => ({
        jobId: id,
        handle: { ...urlsOf(base, { id }), submittedAtMillis: Date.parse(at) }
      }))
    }),
    callbacks: scheme(dialect, base)
  }
}

/** One call a job: when it has ended, however. */
const callbackIn = ({ callbackUrl: webhook }: SubmitRequest) =>
  webhook === undefined ? {} : { webhook, webhook_events_filter: ["completed"] }

const urlsOf = (base: string, { id, urls }: Pick<Prediction, "id" | "urls">) => {
  const own = `${base}/predictions/${encodeURIComponent(id)}`
  return {
    id,
    getUrl: ownUrl(base, urls?.get, own),
    cancelUrl: ownUrl(base, urls?.cancel, `${own}/cancel`)
  }
}

const isCanceled = (status: string): boolean => status === "canceled" || status === "aborted"

const progressOf = (
  { error, id: requestId, output, status }: Prediction,
  ageMillis: number
): Effect.Effect<Progress, VendorError> => {
  if (status === "succeeded") {
    const items = mediaIn(output, true)
    return items.length > 0
      ? Effect.succeed({ _tag: "Done", result: { items } })
      : Effect.fail(empty({ requestId }))
  }
  if (status === "failed" || isCanceled(status)) {
    const message = typeof error === "string" ? error : `The job was ${status} upstream`
    return Effect.fail(jobFailed(rules, { message, requestId }))
  }
  return Effect.succeed({ _tag: "Running", pollAfter: waitAtAge(ageMillis) })
}
