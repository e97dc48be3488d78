import { Clock, Duration, Effect } from "effect"
import { polledOf } from "../../catalog/jobs/JobProtocol.ts"
import type { JobProtocol, OwnResults, Polled } from "../../catalog/jobs/JobProtocol.ts"
import { first, textAt } from "../../catalog/jobs/JsonPath.ts"
import type { Adapter } from "../Adapter.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../BaseUrl.ts"
import { blocking } from "../Blocking.ts"
import { unsupportedModel } from "../BodyFields.ts"
import { emptyResult, jobFailed, jsonIn, unreadableError } from "../Faults.ts"
import { takes } from "../FlatInput.ts"
import { percentOf, pollIntervalAtAge, submitTimeout } from "../Polling.ts"
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
import { isOk } from "../VendorHttp.ts"
import type { VendorResponse } from "../VendorHttp.ts"
import { credentialOf } from "./JobAuth.ts"
import { contentOf } from "./JobBody.ts"
import { callbackScheme } from "./JobCallbacks.ts"
import { hasReason, jobFailure, queryFailure, resultFailure, submitFailure } from "./JobFailures.ts"
import { figuresIn, idOf, jobOf, jobUrl, membersOf, valuesIn } from "./JobHandle.ts"
import type { Job } from "./JobHandle.ts"
import { makeList } from "./JobListing.ts"
import { makeSend } from "./JobRequests.ts"
import type { JobSend } from "./JobRequests.ts"
import { flagsAt, itemsIn, itemsOf, usageIn } from "./JobResults.ts"
import { inlineOrUpload } from "./JobUploads.ts"
import { urlOf, withParameter } from "./JobUrl.ts"
import { formOf } from "./ModelForm.ts"

/**
 * The adapter of a vendor whose jobs are described. Every request uses the description in force, so that a corrected
 * description also serves running jobs. docs/vendors-as-files.md#job-vendors, ADR 0298
 */
export const describedAdapter = (
  provider: string,
  protocol: JobProtocol,
  /** A segment that the configured base may lack. */
  version?: `/${string}`
): Adapter => ({
  provider,
  auth: (key) => {
    const { auth = { scheme: "bearer" } } = protocol
    return credentialOf(auth, key, 0).headers
  },
  make: (context) => make(protocol, version === undefined ? context : versioned(context, version)),
  takes,
  pollsPerSecond: protocol.pollsPerSecond ?? defaultPollsPerSecond
})

const versioned = (context: AdapterContext, version: `/${string}`): AdapterContext => {
  const { account } = context
  return { ...context, account: { ...account, baseUrl: withVersion(account.baseUrl, version) } }
}

const defaultPollsPerSecond = 20

const make = (protocol: JobProtocol, context: AdapterContext): VendorAccount => {
  const { account, accountId } = context
  const base = account.baseUrl
  const send = makeSend(protocol, context)
  const { callbacks, cancel, concurrent, list, submits } = protocol
  const polled = polledOf(protocol)
  return {
    accountId,
    showsProgress: polled?.progress !== undefined,
    submit: submitWith(protocol, polled, base, send),
    poll: polled === undefined ? blocking.poll : pollWith(protocol, polled, base, send),
    cancel:
      cancel === undefined || polled === undefined
        ? () => Effect.succeed("Unsupported")
        : cancelWith(protocol, polled, cancel, base, send),
    ...(list === undefined ? {} : { list: makeList(protocol, list, base, send) }),
    ...(callbacks === undefined ? {} : { callbacks: callbackScheme(callbacks, account, send) }),
    ...(concurrent === undefined ? {} : { slotsOf: () => ({ line: account.id, max: concurrent }) }),
    ...(submits === undefined
      ? {}
      : {
          rateOf: (_act, upstreamModel) => ({
            key: `${account.id}/${upstreamModel}`,
            calls: submits.calls,
            perMillis: submits.seconds * 1000
          })
        })
  }
}

const intervalOf = ({ poll: { seconds = 0 } }: Polled, ageMillis: number) =>
  Duration.max(Duration.seconds(seconds), pollIntervalAtAge(ageMillis))

/** The timeout of a call that returns its results at once. */
const blockingTimeout = Duration.minutes(10)

const submitWith = (
  protocol: JobProtocol,
  polled: Polled | undefined,
  base: string,
  send: JobSend
) => {
  const { idempotencyHeader, method = "POST", path: commonPath } = protocol.submit
  const inline = inlineOrUpload(protocol, base, send)
  return Effect.fn("DescribedJobs.submit")(function* (
    request: SubmitRequest
  ): Effect.fn.Return<Submitted, VendorError> {
    const { callbackUrl, described, taskId, upstreamModel: model } = request
    const form = formOf(protocol.submit, model)
    const path = described?.submit?.path ?? form?.path ?? commonPath
    const address = path === undefined ? undefined : urlOf(base, path, { ...form?.named, model })
    const parameter = protocol.callbacks?.parameter
    const url =
      address === undefined || callbackUrl === undefined || parameter === undefined
        ? address
        : withParameter(address, parameter, callbackUrl)
    if (url === undefined) return yield* unsupportedModel(request)
    const own = described?.submit?.results ?? protocol.submit.results
    const response = yield* send({
      purpose: "submit",
      model,
      method,
      url,
      ...(yield* contentOf(protocol, request, inline)),
      ...(idempotencyHeader === undefined ? {} : { headers: { [idempotencyHeader]: taskId } }),
      timeout: own === undefined ? submitTimeout : blockingTimeout
    })
    if (own !== undefined) return yield* resultOf(protocol, own, request, response)
    const json = isOk(response) ? jsonIn(response) : undefined
    const id = textAt([String(polled?.handle["id"])], json)
    if (polled === undefined || id === undefined || id === "") {
      return yield* submitFailure(protocol, response)
    }
    const submittedAtMillis = yield* Clock.currentTimeMillis
    return {
      _tag: "Accepted",
      handle: {
        ...valuesIn(polled, base, { id, model }, json),
        ...membersOf(request, submittedAtMillis)
      },
      pollAfter: intervalOf(polled, 0)
    }
  })
}

/** The result of a call that returns its results at once. A response without results may have been paid for. */
const resultOf = Effect.fnUntraced(function* (
  protocol: JobProtocol,
  own: OwnResults,
  request: SubmitRequest,
  response: VendorResponse
): Effect.fn.Return<Submitted, VendorError> {
  const json = jsonIn(response)
  const items = isOk(response) ? itemsOf(own, response, json, request) : []
  return items.length === 0
    ? yield* submitFailure(protocol, response)
    : { _tag: "Done", result: { items, usage: usageIn(protocol.usage ?? {}, json) } }
})

const pollWith = (protocol: JobProtocol, polled: Polled, base: string, send: JobSend) =>
  Effect.fnUntraced(function* (handle: Handle): Effect.fn.Return<Progress, VendorError> {
    const job = yield* jobOf(polled, base, handle)
    const url = yield* jobUrl(base, polled.poll.path, job)
    const response = yield* send({ purpose: "query", url })
    if (!isOk(response)) return yield* queryFailure(protocol, response)
    const json = jsonIn(response)
    const { absent, at, done, failed, failure, running } = polled.state
    const isAbsent = absent !== undefined && typeof json === "object" && json !== null
    const state = textAt([at], json) ?? (isAbsent ? running[0] : undefined)
    if (state === undefined) return yield* unreadableError("query", response)
    const isDone = done.includes(state)
    const isFailed = isDone && failure !== undefined && textAt([failure], json) !== undefined
    if (isFailed) return yield* jobFailure(protocol, json, idOf(job))
    if (failed.includes(state)) return yield* jobFailure(protocol, json, idOf(job), state)
    if (isDone) return yield* doneWith(protocol, polled, base, send, job, json)
    const age = (yield* Clock.currentTimeMillis) - job.submittedAtMillis
    return { _tag: "Running", pollAfter: intervalOf(polled, age), ...percentIn(polled, json) }
  })

const percentIn = ({ progress }: Polled, json: unknown) =>
  progress === undefined ? {} : { percent: percentOf(first(progress.at, json), progress.of) }

const doneWith = Effect.fnUntraced(function* (
  protocol: JobProtocol,
  { results }: Polled,
  base: string,
  send: JobSend,
  job: Job,
  json: unknown
): Effect.fn.Return<Progress, VendorError> {
  const { usage = {} } = protocol
  const { at = "$" } = results
  const shown = first(
    at,
    results.path === undefined ? json : yield* resultsOf(protocol, base, send, job, results.path)
  )
  const isFlagged = flagsAt(job.result === "documents" ? undefined : results.flagged, shown)
  const items = (yield* made(results, base, shown, job)).filter((_, index) => !isFlagged(index))
  // The state response, not the results, may say why there are none
  if (items.length === 0) {
    const requestId = idOf(job)
    if (isFlagged(0)) return yield* jobFailed([{ class: "CONTENT" }], { ...flagged, requestId })
    return yield* hasReason(protocol, json)
      ? jobFailure(protocol, json, requestId)
      : emptyResult({ requestId })
  }
  return {
    _tag: "Done",
    result:
      job.isLabelled === true
        ? { items }
        : { items, usage: { ...figuresIn(job), ...usageIn(usage, json), ...usageIn(usage, shown) } }
  }
})

/** The results that the response shows, or the one whose bytes are at a path. */
const made = (results: Polled["results"], base: string, shown: unknown, job: Job) =>
  results.content === undefined
    ? Effect.succeed(itemsIn(results, shown, job))
    : Effect.map(jobUrl(base, results.content, job), (url): ReadonlyArray<ResultItem> => [
        { _tag: "Url", url, mime: results.mime ?? "application/octet-stream", needsAuth: true }
      ])

const flagged = { code: "flagged", message: "The result was flagged as unsafe" }

const resultsOf = Effect.fnUntraced(function* (
  protocol: JobProtocol,
  base: string,
  send: JobSend,
  job: Job,
  path: string
) {
  const response = yield* send({ purpose: "query", url: yield* jobUrl(base, path, job) })
  if (!isOk(response)) return yield* resultFailure(protocol, response, idOf(job))
  // Accepted, so the results are not there yet
  const json = response.status === 202 ? undefined : jsonIn(response)
  return json === undefined ? yield* unreadableError("query", response) : json
})

const cancelWith = (
  protocol: JobProtocol,
  polled: Polled,
  { method, path, states, tooLate = [] }: NonNullable<JobProtocol["cancel"]>,
  base: string,
  send: JobSend
) =>
  Effect.fn("DescribedJobs.cancel")(function* (
    handle: Handle
  ): Effect.fn.Return<CancelOutcome, VendorError> {
    const job = yield* jobOf(polled, base, handle)
    const response = yield* send({ purpose: "query", method, url: yield* jobUrl(base, path, job) })
    if (tooLate.includes(response.status)) return "TooLate"
    if (!isOk(response)) return yield* queryFailure(protocol, response)
    const state = textAt([polled.state.at], jsonIn(response)) ?? ""
    return states === undefined || states.includes(state) ? "Canceled" : "TooLate"
  })
