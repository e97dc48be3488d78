import type {
  FailureRule,
  JobProtocol,
  OwnResults,
  Polled
} from "../../catalog/jobs/JobProtocol.ts"
import { written } from "../../catalog/jobs/JsonPath.ts"
import { usualFields } from "../OutputMedia.ts"
import type { VendorErrorClass } from "../VendorError.ts"

/** A simulated vendor response, built from the vendor's description. */
export interface Played {
  readonly status: number
  readonly json: unknown
}

/**
 * The response to a submit, with the values of the handle. Values other than the id are URLs of the vendor's own
 * origin.
 */
export const playHandle = ({ handle }: Polled, id: string, base: string): Played => ({
  status: 200,
  json: Object.entries(handle).reduce<unknown>(
    (json, [name, at]) =>
      written(json, typeof at === "string" ? at : at.url, [
        name === "id" ? id : `${base}/jobs/${id}/${name}`
      ]),
    {}
  )
})

/** The response to an upload. */
export const playUpload = (
  { at }: NonNullable<JobProtocol["submit"]["uploads"]>,
  base: string
): Played => ({ status: 200, json: written({}, at, [`${base}/uploaded`]) })

/** The poll response of a running job, with its progress if the description reads it. */
export const playRunning = ({ progress, state }: Polled, percent: number): Played => {
  const json = written({}, state.at, [state.running[0]])
  return {
    status: 200,
    json:
      progress === undefined ? json : written(json, progress.at, [(percent / 100) * progress.of])
  }
}

/** The simulated results, in each form that a description can name. */
export interface PlayedResults {
  readonly urls: ReadonlyArray<string>
  /** The bytes of the results, as Base64. */
  readonly encoded: () => ReadonlyArray<string>
  /** The JSON values of the results. */
  readonly documents: () => ReadonlyArray<unknown>
}

/** Writes the results where the description reads them. A path without a wildcard gets only the first result. */
export const playResults = (
  { base64, json: documents, urls }: OwnResults,
  made: PlayedResults,
  json: unknown = {}
): unknown => {
  if (urls === "usual") {
    const fields = Object.values(usualFields).flatMap(([field]) => field ?? [])
    return fields.reduce((all, field) => written(all, `$.${field}`, [made.urls]), json)
  }
  if (urls !== undefined) return written(json, urls[0], made.urls)
  if (base64 !== undefined) return written(json, base64[0], made.encoded())
  return documents === undefined ? json : written(json, documents[0], made.documents())
}

/** The results at their place in the response of a job. */
const playBelow = (results: Polled["results"], made: PlayedResults, json: unknown): unknown =>
  results.at === undefined
    ? playResults(results, made, json)
    : written(json, results.at, [playResults(results, made)])

/** The measured figures that the vendor's description reads. */
export const playFigures = (
  usage: NonNullable<JobProtocol["usage"]>,
  measured: Readonly<Record<string, number>>
): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(measured).filter(([name]) => Object.hasOwn(usage, name)))

/** The poll response of a job that has ended, with its results and figures. */
export const playDone = (
  { results, state }: Polled,
  made: PlayedResults,
  usage: NonNullable<JobProtocol["usage"]> = {},
  measured: Readonly<Record<string, number>> = {}
): Played => ({
  status: 200,
  json: Object.entries(playFigures(usage, measured)).reduce<unknown>(
    (json, [name, figure]) => written(json, usage[name] ?? "$", [figure]),
    playBelow(results, made, written({}, state.at, [state.done[0]]))
  )
})

type Report = JobProtocol["error"]

const reported = (
  json: unknown,
  { code, message: [messagePath] }: Report,
  rule: FailureRule | undefined,
  message: string
): unknown => {
  const word = rule?.codes?.[0].replace(/\*$/u, "PLAYED")
  const withMessage = written(json, messagePath, [message])
  return word === undefined || code === undefined
    ? withMessage
    : written(withMessage, code[0], [word])
}

/**
 * The rule for a simulated failure. Skips rules with a condition, because the simulator cannot tell what would meet it,
 * and rules with a code that the description does not read.
 */
const ruleOf = (
  failures: ReadonlyArray<FailureRule>,
  kind: VendorErrorClass,
  report: Report,
  isOfJob: boolean
): FailureRule | undefined =>
  failures.find(
    (rule) =>
      rule.class === kind &&
      rule.when === undefined &&
      (rule.codes === undefined || report.code !== undefined) &&
      !(isOfJob && rule.status !== undefined)
  )

/** The poll response of a failed job. Gives this reason if the description has a rule for it, else no code. */
export const playFailed = (
  { error, failures, jobError = error }: JobProtocol,
  { state }: Polled,
  kind: VendorErrorClass,
  message: string
): Played => ({
  status: 200,
  json: reported(
    written({}, state.at, [state.failed[0]]),
    jobError,
    ruleOf(failures, kind, jobError, true),
    message
  )
})

/** The refusal of a request; `undefined` if the description has no rule for this class. */
export const playRefusal = (
  { error, failures }: JobProtocol,
  kind: VendorErrorClass,
  message: string
): Played | undefined => {
  const rule = ruleOf(failures, kind, error, false)
  return rule === undefined
    ? undefined
    : { status: rule.status ?? 400, json: reported({}, error, rule, message) }
}

/** The response for a job that the vendor does not know. */
export const playUnknown = ({ error }: JobProtocol): Played => ({
  status: 404,
  json: reported({}, error, undefined, "There is no such job")
})
