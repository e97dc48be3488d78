import { Clock, Effect, Struct } from "effect"
import { holds } from "../../catalog/jobs/Expression.ts"
import type { FailureRule, JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { textAt } from "../../catalog/jobs/JsonPath.ts"
import { retryAfterMillis } from "../accounts/RateLimits.ts"
import { classOf, jobFailed, jsonIn, responseError, unreadableError } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import type { VendorError } from "../VendorError.ts"
import type { VendorResponse } from "../VendorHttp.ts"

type Report = JobProtocol["error"]

/** The error at these paths; `undefined` if the body is not the vendor's. */
const reportIn = (
  { code: codes, codeHeader = "", message: messages, requestIdHeader = "" }: Report,
  json: unknown,
  headers: VendorResponse["headers"] = {}
) => {
  const code = textAt(codes ?? [], json)
  const message = textAt(messages, json)
  if (code === undefined && message === undefined) return undefined
  const requestId = headers[requestIdHeader.toLowerCase()]
  return { code: code ?? headers[codeHeader.toLowerCase()], message, requestId }
}

const faultRule = ({ class: kind, codes, status }: FailureRule): FaultRule => ({
  class: kind,
  ...(codes === undefined ? {} : { codes }),
  ...(status === undefined ? {} : { status })
})

/** What was requested. */
type Requested = "submit" | "results" | "query"

/** The rules whose conditions a response meets. `status` is 0 for a failed job. */
const rulesOf = (
  failures: ReadonlyArray<FailureRule>,
  request: Requested,
  status: number,
  { code, message }: ReportedError,
  response: unknown
): ReadonlyArray<FaultRule> =>
  failures
    .filter(
      ({ when }) =>
        when === undefined ||
        holds(when, { request, status, code: code ?? "", message: message ?? "", response })
    )
    .map(faultRule)

/** Classes that describe the outcome of a job, so they do not prove that no job exists. */
const ofJobs: ReadonlySet<string> = new Set(["FAILED", "TIMEOUT"])

const isOfJob = (rule: FaultRule): boolean => ofJobs.has(rule.class)

const ofSubmit = (rule: FaultRule): FaultRule =>
  isOfJob(rule) ? { ...rule, class: "AMBIGUOUS" } : rule

/**
 * The failure of a submit. Unless the description says that this very response means that nothing was bought, the
 * submit is ambiguous and is never repeated. ADR 0298
 */
export const submitFailure = Effect.fnUntraced(function* (
  { error, failures }: JobProtocol,
  response: VendorResponse
) {
  const json = jsonIn(response)
  const reported = reportIn(error, json, response.headers)
  const wait = retryAfterMillis(response.headers, yield* Clock.currentTimeMillis)
  if (reported !== undefined) {
    const rules = rulesOf(failures, "submit", response.status, reported, json).map(ofSubmit)
    return yield* responseError([...rules, { class: "AMBIGUOUS" }], "submit", response, {
      ...reported,
      retryAfterMillis: wait
    })
  }
  return yield* error.absent === undefined
    ? unreadableError("submit", response)
    : responseError([], "submit", response, waitOf(response, wait))
})

/** The failure of a request about a job, which is free and can be repeated. */
export const queryFailure = Effect.fnUntraced(function* (
  { error, failures }: JobProtocol,
  response: VendorResponse
) {
  const json = jsonIn(response)
  const reported = reportIn(error, json, response.headers)
  const rules = rulesOf(failures, "query", response.status, reported ?? {}, json)
  const wait = retryAfterMillis(response.headers, yield* Clock.currentTimeMillis)
  return yield* responseError(
    rules,
    "query",
    response,
    reported === undefined ? waitOf(response, wait) : { ...reported, retryAfterMillis: wait }
  )
})

/** What a response of an intermediary reports: the wait of a 429. */
const waitOf = ({ status }: VendorResponse, retryAfterMillis: number | undefined) =>
  status === 429 ? { retryAfterMillis } : undefined

/** With these statuses the vendor refuses the request about the job, not the job itself, unless a rule says so. */
const notOfJobs: ReadonlySet<number> = new Set([401, 403, 429, 503])

/** Whether a poll says why the job has no results. */
export const hasReason = ({ error, jobError = error }: JobProtocol, json: unknown): boolean =>
  reportIn(jobError, json) !== undefined

/**
 * The failure of a job, reported by a poll or by the request for its results. Without the vendor's message, it names
 * the state in which the job ended.
 */
export const jobFailure = (
  { error, failures, jobError = error }: JobProtocol,
  json: unknown,
  id: string,
  state?: string
): VendorError => {
  const reported = { ...reportIn(jobError, json), requestId: id }
  const rules = rulesOf(failures, "query", 0, reported, json)
  const message =
    reported.message ?? (state && `The job ended upstream in the state ${JSON.stringify(state)}`)
  return jobFailed(
    rules.filter(({ status }) => status === undefined),
    { ...reported, message }
  )
}

/** The request for the results of an ended job was refused. Usually this reports the failure of the job. */
export const resultFailure = (
  protocol: JobProtocol,
  response: VendorResponse,
  id: string
): Effect.Effect<never, VendorError> => {
  const { error, failures } = protocol
  const json = jsonIn(response)
  const reported = reportIn(error, json, response.headers)
  if (reported === undefined) return queryFailure(protocol, response)
  const rules = rulesOf(failures, "results", response.status, reported, json)
    .filter(({ status = response.status }) => status === response.status)
    .map(Struct.omit(["status"]))
  if (
    notOfJobs.has(response.status) &&
    !ofJobs.has(classOf(rules.filter(isOfJob), response.status, reported))
  ) {
    return queryFailure(protocol, response)
  }
  return Effect.fail(jobFailed(rules, { ...reported, requestId: id }))
}
