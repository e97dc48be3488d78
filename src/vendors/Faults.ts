import { Clock, Effect, Schema } from "effect"
import type { Option } from "effect"
import { VendorError } from "./VendorError.ts"
import type { VendorErrorClass } from "./VendorError.ts"
import type { NoAnswer, VendorAnswer } from "./VendorHttp.ts"

/**
 * `submit` buys: what may have been bought is ambiguous. `ask` is free: what went wrong on the way is
 * asked again.
 */
export type Purpose = "submit" | "ask"

/** A failure in the vendor's own words. */
export interface Refusal {
  readonly code?: string | undefined
  readonly message?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfterMillis?: number | undefined
}

/** One row of a family's table. All that stands in it must fit; the first row that fits decides. */
export interface FaultRule {
  readonly status?: number
  /** Whole code, or its beginning when it ends in `*`. */
  readonly codes?: ReadonlyArray<string>
  readonly says?: RegExp
  readonly class: VendorErrorClass
}

const fitsCode = (code: string, patterns: ReadonlyArray<string>): boolean =>
  patterns.some((it) => (it.endsWith("*") ? code.startsWith(it.slice(0, -1)) : code === it))

/** What every HTTP API means by its status, where the family's table says nothing else. */
const byStatus = (status: number): VendorErrorClass => {
  if (status === 401 || status === 402 || status === 403 || status === 404) return "OPERATOR"
  if (status === 429) return "RATE_LIMITED"
  if (status >= 500) return "RETRYABLE"
  return status >= 400 ? "FATAL_CLIENT" : "FAILED"
}

/** The class of a refusal by the family's table. `status` 0: told inside a 200. */
export const classOf = (
  rules: ReadonlyArray<FaultRule>,
  status: number,
  { code = "", message = "" }: Refusal
): VendorErrorClass =>
  rules.find(
    (rule) =>
      (rule.status === undefined || rule.status === status) &&
      (rule.codes === undefined || fitsCode(code, rule.codes)) &&
      (rule.says === undefined || rule.says.test(message))
  )?.class ?? byStatus(status)

/** A vendor may quote a whole picture: its words go to the log and into a row. */
const wordsMax = 4000
const brief = (words: string): string => words.slice(0, wordsMax)

const made = (
  kind: VendorErrorClass,
  refusal: Refusal,
  fallback: string,
  httpStatus?: number
): VendorError =>
  new VendorError({
    class: kind,
    message: brief(
      refusal.message === undefined || refusal.message === "" ? fallback : refusal.message
    ),
    ...(httpStatus === undefined ? {} : { httpStatus }),
    ...(refusal.code === undefined ? {} : { vendorCode: brief(refusal.code) }),
    ...(refusal.requestId === undefined ? {} : { requestId: brief(refusal.requestId) }),
    ...(refusal.retryAfterMillis === undefined || kind !== "RATE_LIMITED"
      ? {}
      : { retryAfterMillis: refusal.retryAfterMillis })
  })

/** A page of somebody on the way (a firewall, a proxy) says nothing of the job that was asked about. */
const nobodys: ReadonlySet<number> = new Set([401, 402, 403, 404, 408])

/**
 * An answer that is not 2xx. Without the vendor's own words it comes from an edge on the way: then
 * a submit may have passed through it, unless the status says that nobody took it (vendors.md C).
 */
export const refused = (
  rules: ReadonlyArray<FaultRule>,
  purpose: Purpose,
  answer: VendorAnswer,
  refusal: Refusal | undefined
): VendorError => {
  const { status } = answer
  if (refusal === undefined) {
    const unsure = purpose === "submit" && status >= 500 && status !== 503
    const isNobodys = status < 400 || (purpose === "ask" && nobodys.has(status))
    const kind = unsure ? "AMBIGUOUS" : isNobodys ? "RETRYABLE" : byStatus(status)
    return made(
      purpose === "submit" && status < 400 ? "AMBIGUOUS" : kind,
      {},
      `HTTP ${status}`,
      status
    )
  }
  const kind = classOf(rules, status, refusal)
  return made(
    purpose === "ask" ? askedOf(kind, status) : submittedOf(kind),
    refusal,
    `HTTP ${status}`,
    status
  )
}

/** Who asks with a job's own id is wrong only when the job is not there any more. */
const askedOf = (kind: VendorErrorClass, status: number): VendorErrorClass =>
  kind === "FATAL_CLIENT" || status === 404 || status === 410 ? "LOST" : kind

/** A submit that took the vendor too long, as it says itself, left no job behind. */
const submittedOf = (kind: VendorErrorClass): VendorErrorClass =>
  kind === "TIMEOUT" ? "RETRYABLE" : kind

/** A job that the vendor says has failed: it is over, so nothing of it is asked or bought again. */
export const jobFailed = (rules: ReadonlyArray<FaultRule>, refusal: Refusal): VendorError => {
  const kind = classOf(rules, 0, refusal)
  const over = kind === "RETRYABLE" || kind === "RATE_LIMITED" || kind === "AMBIGUOUS"
  return made(over ? "FAILED" : kind, refusal, "The job failed upstream")
}

/** No answer came at all. */
export const unanswered = (purpose: Purpose, { message, sent }: NoAnswer): VendorError =>
  new VendorError({ class: sent && purpose === "submit" ? "AMBIGUOUS" : "RETRYABLE", message })

/** A 2xx that cannot be read: a submit may have bought the job, a question is asked again. */
export const unreadable = (purpose: Purpose, answer: VendorAnswer): VendorError =>
  new VendorError({
    class: purpose === "submit" ? "AMBIGUOUS" : "RETRYABLE",
    message: "The upstream's answer cannot be read",
    httpStatus: answer.status
  })

/** The job's success holds nothing that can be shown. */
export const empty = (refusal: Refusal = {}): VendorError =>
  made("FAILED", refusal, "The upstream reported success without any result")

const utf8 = new TextDecoder()

/** Decodes the JSON of an answer. */
export const readAs = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  return (answer: VendorAnswer): Option.Option<S["Type"]> => decode(utf8.decode(answer.body))
}

const secondsMax = 3600

/** `retry-after-ms`, then `Retry-After` in seconds or as a date; milliseconds. vendors.md A3. */
export const retryAfterOf = (answer: VendorAnswer): Effect.Effect<number | undefined> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const millis = Number(answer.headers["retry-after-ms"] ?? Number.NaN)
    if (Number.isFinite(millis)) return bounded(millis)
    const text = answer.headers["retry-after"]
    if (text === undefined) return undefined
    const seconds = Number(text)
    const date = Number.isFinite(seconds) ? now + seconds * 1000 : Date.parse(text)
    return Number.isFinite(date) ? bounded(date - now) : undefined
  })

const bounded = (millis: number): number => Math.min(Math.max(millis, 0), secondsMax * 1000)
