import { Clock, Effect, Struct } from "effect"
import { holds } from "../../catalog/jobs/Expression.ts"
import type { FailureRule, JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { textAt } from "../../catalog/jobs/JsonPath.ts"
import { retryAfterMillis } from "../accounts/RateLimits.ts"
import { jobFailed, responseError, unreadableError } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import type { VendorError } from "../VendorError.ts"
import type { VendorResponse } from "../VendorHttp.ts"
import { jsonIn } from "./JobRequests.ts"

type Report = JobProtocol["error"]

/** What the vendor reports at these places; `undefined` when the body is not the vendor's. */
const reportIn = ({ code: codes, message: messages }: Report, json: unknown) => {
  const code = textAt(codes ?? [], json)
  const message = textAt(messages, json)
  return code === undefined && message === undefined ? undefined : { code, message }
}

const faultRule = ({ class: kind, codes, status }: FailureRule): FaultRule => ({
  class: kind,
  ...(codes === undefined ? {} : { codes }),
  ...(status === undefined ? {} : { status })
})

/** The rules whose conditions hold of a response. `status` 0: a job that has failed. */
const rulesOf = (
  failures: ReadonlyArray<FailureRule>,
  status: number,
  { code, message }: ReportedError,
  response: unknown
): ReadonlyArray<FaultRule> =>
  failures
    .filter(
      ({ when }) =>
        when === undefined ||
        holds(when, { status, code: code ?? "", message: message ?? "", response })
    )
    .map(faultRule)

/** These say what became of a job, and not that there is none. */
const ofJobs: ReadonlySet<string> = new Set(["FAILED", "TIMEOUT"])

const ofSubmit = (rule: FaultRule): FaultRule =>
  ofJobs.has(rule.class) ? { ...rule, class: "AMBIGUOUS" } : rule

/**
 * The failure of a submit. It has bought nothing only if the description says so of this very response; in any other
 * case it is in doubt, and never submitted again. ADR 0298
 */
export const submitFailure = Effect.fnUntraced(function* (
  { error, failures }: JobProtocol,
  response: VendorResponse
) {
  const json = jsonIn(response)
  const reported = reportIn(error, json)
  if (reported === undefined) return yield* unreadableError("submit", response)
  const rules = rulesOf(failures, response.status, reported, json).map(ofSubmit)
  const wait = retryAfterMillis(response.headers, yield* Clock.currentTimeMillis)
  return yield* responseError([...rules, { class: "AMBIGUOUS" }], "submit", response, {
    ...reported,
    retryAfterMillis: wait
  })
})

/** The failure of a request about a job, which is free and can be repeated. */
export const queryFailure = Effect.fnUntraced(function* (
  { error, failures }: JobProtocol,
  response: VendorResponse
) {
  const json = jsonIn(response)
  const reported = reportIn(error, json)
  const rules = rulesOf(failures, response.status, reported ?? {}, json)
  const wait = retryAfterMillis(response.headers, yield* Clock.currentTimeMillis)
  return yield* responseError(
    rules,
    "query",
    response,
    reported === undefined && response.status !== 429
      ? undefined
      : { ...reported, retryAfterMillis: wait }
  )
})

/** With these the vendor refuses the request about a job, not the job. */
const notOfJobs: ReadonlySet<number> = new Set([401, 403, 429, 503])

/** Whether a poll says why the job has no results. */
export const hasReason = ({ error, jobError = error }: JobProtocol, json: unknown): boolean =>
  reportIn(jobError, json) !== undefined

/** The failure of a job in its poll, or in the request for its results. */
export const jobFailure = (
  { error, failures, jobError = error }: JobProtocol,
  json: unknown,
  id: string
): VendorError => {
  const reported = { ...reportIn(jobError, json), requestId: id }
  const rules = rulesOf(failures, 0, reported, json)
  return jobFailed(
    rules.filter(({ status }) => status === undefined),
    reported
  )
}

/** The request for the results of a job that has ended was refused: mostly that is the failure of the job. */
export const resultFailure = (
  protocol: JobProtocol,
  response: VendorResponse,
  id: string
): Effect.Effect<never, VendorError> => {
  const { error, failures } = protocol
  const json = jsonIn(response)
  const reported = reportIn(error, json)
  if (reported === undefined || notOfJobs.has(response.status)) {
    return queryFailure(protocol, response)
  }
  const rules = rulesOf(failures, response.status, reported, json)
    .filter(({ status = response.status }) => status === response.status)
    .map(Struct.omit(["status"]))
  return Effect.fail(jobFailed(rules, { ...reported, requestId: id }))
}
