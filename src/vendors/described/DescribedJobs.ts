import { Clock, Duration, Effect, Schema } from "effect"
import { decimal } from "../../catalog/jobs/Expression.ts"
import { polledOf } from "../../catalog/jobs/JobProtocol.ts"
import type { JobProtocol, OwnResults, Polled } from "../../catalog/jobs/JobProtocol.ts"
import { first, textAt } from "../../catalog/jobs/JsonPath.ts"
import type { Adapter } from "../Adapter.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { blocking } from "../Blocking.ts"
import { unsupportedModel } from "../BodyFields.ts"
import { emptyResult, unreadableError } from "../Faults.ts"
import { percentOf, pollIntervalAtAge, submitTimeout } from "../Polling.ts"
import type {
  CancelOutcome,
  Handle,
  Progress,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import type { VendorResponse } from "../VendorHttp.ts"
import { credentialOf } from "./JobAuth.ts"
import { contentOf } from "./JobBody.ts"
import { callbackScheme } from "./JobCallbacks.ts"
import { hasReason, jobFailure, queryFailure, resultFailure, submitFailure } from "./JobFailures.ts"
import { makeList } from "./JobListing.ts"
import { isOk, jsonIn, makeSend } from "./JobRequests.ts"
import type { JobSend } from "./JobRequests.ts"
import { itemsIn, itemsOf, usageIn } from "./JobResults.ts"
import { urlOf, withParameter } from "./JobUrl.ts"

/** A handle: these members, and the values that the description names. */
const Job = Schema.StructWithRest(
  Schema.Struct({
    id: Schema.NonEmptyString,
    model: Schema.String,
    submittedAtMillis: Schema.Finite
  }),
  [Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite]))]
)
type Job = typeof Job.Type
const decodeJob = Schema.decodeUnknownOption(Job)

const lost = (message: string) => new VendorError({ class: "LOST", message })

const jobOf = (handle: Handle) =>
  Effect.mapError(Effect.fromOption(decodeJob(handle)), () =>
    lost("The job's handle is not of this vendor's description")
  )

/**
 * The adapter of a vendor whose jobs are described. Every request uses the description in force, so that a corrected
 * description also serves running jobs. docs/vendors-as-files.md#job-vendors, ADR 0298
 */
export const describedAdapter = (provider: string, protocol: JobProtocol): Adapter => ({
  provider,
  auth: (key) => {
    const { auth = { scheme: "bearer" } } = protocol
    return credentialOf(auth, key, 0).headers
  },
  make: (context) => make(protocol, context),
  pollsPerSecond: protocol.pollsPerSecond ?? defaultPollsPerSecond
})

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
      cancel === undefined
        ? () => Effect.succeed("Unsupported")
        : cancelWith(protocol, cancel, base, send),
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
  const { idempotencyHeader, method = "POST", path: commonPath = "" } = protocol.submit
  return Effect.fn("DescribedJobs.submit")(function* (
    request: SubmitRequest
  ): Effect.fn.Return<Submitted, VendorError> {
    const { callbackUrl, described, taskId, upstreamModel: model } = request
    const address = urlOf(base, described?.submit?.path ?? commonPath, { model })
    const parameter = protocol.callbacks?.parameter
    const url =
      address === undefined || callbackUrl === undefined || parameter === undefined
        ? address
        : withParameter(address, parameter, callbackUrl)
    if (described === undefined || url === undefined) return yield* unsupportedModel(request)
    const own = described.submit?.results ?? protocol.submit.results
    const response = yield* send({
      purpose: "submit",
      model,
      method,
      url,
      ...(yield* contentOf(protocol, described, request)),
      ...(idempotencyHeader === undefined ? {} : { headers: { [idempotencyHeader]: taskId } }),
      timeout: own === undefined ? submitTimeout : blockingTimeout
    })
    if (own !== undefined) return yield* resultOf(protocol, own, response)
    const handle = isOk(response) && polled && handleIn(polled, response)
    if (!handle || !polled) return yield* submitFailure(protocol, response)
    const submittedAtMillis = yield* Clock.currentTimeMillis
    return {
      _tag: "Accepted",
      handle: { ...handle, model, submittedAtMillis },
      pollAfter: intervalOf(polled, 0)
    }
  })
}

/** The result of a call that returns its results at once. A response without results may have been paid for. */
const resultOf = Effect.fnUntraced(function* (
  protocol: JobProtocol,
  own: OwnResults,
  response: VendorResponse
): Effect.fn.Return<Submitted, VendorError> {
  const json = jsonIn(response)
  const items = isOk(response) ? itemsOf(own, response, json) : []
  return items.length === 0
    ? yield* submitFailure(protocol, response)
    : { _tag: "Done", result: { items, usage: usageIn(protocol.usage ?? {}, json) } }
})

/** The values that later requests need; `undefined` if the response has no id. */
const handleIn = ({ handle: paths }: Polled, response: VendorResponse) => {
  const json = jsonIn(response)
  const values = Object.entries(paths).flatMap(([name, path]) => {
    const text = textAt([path], json)
    return text === undefined || text === "" ? [] : [[name, text] as const]
  })
  const handle = Object.fromEntries(values)
  return handle["id"] === undefined ? undefined : handle
}

/** The URL of a request about a job. A handle without the values of the path does not belong to this description. */
const jobUrl = (base: string, path: string, job: Job) => {
  const url = urlOf(base, path, job)
  return url === undefined
    ? Effect.fail(lost("The job's handle does not have what its path needs"))
    : Effect.succeed(url)
}

const pollWith = (protocol: JobProtocol, polled: Polled, base: string, send: JobSend) =>
  Effect.fn("DescribedJobs.poll")(function* (
    handle: Handle
  ): Effect.fn.Return<Progress, VendorError> {
    const job = yield* jobOf(handle)
    const url = yield* jobUrl(base, polled.poll.path, job)
    const response = yield* send({ purpose: "query", url })
    if (!isOk(response)) return yield* queryFailure(protocol, response)
    const json = jsonIn(response)
    const { absent, at, done, failed, running } = polled.state
    const isAbsent = absent !== undefined && typeof json === "object" && json !== null
    const state = textAt([at], json) ?? (isAbsent ? running[0] : undefined)
    if (state === undefined) return yield* unreadableError("query", response)
    if (failed.includes(state)) return yield* jobFailure(protocol, json, job.id)
    if (done.includes(state)) return yield* doneWith(protocol, polled, base, send, job, json)
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
  const shown =
    results.path === undefined ? json : yield* resultsOf(protocol, base, send, job, results.path)
  const items = itemsIn(results, shown)
  // The state response, not the results, may say why there are none
  if (items.length === 0) {
    return yield* hasReason(protocol, json)
      ? jobFailure(protocol, json, job.id)
      : emptyResult({ requestId: job.id })
  }
  return {
    _tag: "Done",
    result: {
      items,
      usage: { ...figuresIn(job), ...usageIn(usage, json), ...usageIn(usage, shown) }
    }
  }
})

/** The numbers in a handle. Some vendors report the cost of a job only in the response to its submit. */
const figuresIn = ({ id: _id, model: _model, submittedAtMillis: _at, ...values }: Job) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => isFigure(String(value))))

const isFigure = (text: string): boolean => decimal.test(text) && !text.startsWith("-")

const resultsOf = Effect.fnUntraced(function* (
  protocol: JobProtocol,
  base: string,
  send: JobSend,
  job: Job,
  path: string
) {
  const response = yield* send({ purpose: "query", url: yield* jobUrl(base, path, job) })
  if (!isOk(response)) return yield* resultFailure(protocol, response, job.id)
  const json = jsonIn(response)
  return json === undefined ? yield* unreadableError("query", response) : json
})

const cancelWith = (
  protocol: JobProtocol,
  { method, path, tooLate = [] }: NonNullable<JobProtocol["cancel"]>,
  base: string,
  send: JobSend
) =>
  Effect.fn("DescribedJobs.cancel")(function* (
    handle: Handle
  ): Effect.fn.Return<CancelOutcome, VendorError> {
    const job = yield* jobOf(handle)
    const response = yield* send({ purpose: "query", method, url: yield* jobUrl(base, path, job) })
    if (tooLate.includes(response.status)) return "TooLate"
    return isOk(response) ? "Canceled" : yield* queryFailure(protocol, response)
  })
