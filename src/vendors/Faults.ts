import { Option, Schema } from "effect"
import { failureCharactersMax } from "../domain/limits/Limits.ts"
import { sanitize } from "../domain/VendorText.ts"
import { VendorError } from "./VendorError.ts"
import type { VendorErrorClass } from "./VendorError.ts"
import type { NoResponse, VendorResponse } from "./VendorHttp.ts"

/** A `submit` buys a job, so doubt about it is `AMBIGUOUS`. A `query` is free and can be repeated. */
export type Purpose = "submit" | "query"

/** An error as the vendor reports it in a response. */
export interface ReportedError {
  readonly code?: string | undefined
  readonly message?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfterMillis?: number | undefined
}

/** One row of an adapter's error table. All its conditions must hold; the first matching row decides. */
export interface FaultRule {
  readonly status?: number
  /** A whole code, or a prefix if it ends in `*`. */
  readonly codes?: ReadonlyArray<string>
  readonly message?: RegExp
  readonly class: VendorErrorClass
}

const matchesCode = (code: string, patterns: ReadonlyArray<string>): boolean =>
  patterns.some((it) => (it.endsWith("*") ? code.startsWith(it.slice(0, -1)) : code === it))

/** The class that a status usually means, used if no rule matches. */
const classOfStatus = (status: number): VendorErrorClass => {
  if (status === 401 || status === 402 || status === 403 || status === 404) return "OPERATOR"
  if (status === 429) return "RATE_LIMITED"
  if (status >= 500) return "RETRYABLE"
  return status >= 400 ? "FATAL_CLIENT" : "FAILED"
}

/** The class of a reported error. `status` is 0 if it was reported in a 200. */
export const classOf = (
  rules: ReadonlyArray<FaultRule>,
  status: number,
  { code = "", message = "" }: ReportedError
): VendorErrorClass =>
  rules.find(
    (rule) =>
      (rule.status === undefined || rule.status === status) &&
      (rule.codes === undefined || matchesCode(code, rule.codes)) &&
      (rule.message === undefined || rule.message.test(message))
  )?.class ?? classOfStatus(status)

/** Sanitizes a message for the log, the store and the client, because vendors may quote a whole image or a key. */
const plain = (text: string): string => sanitize(text, failureCharactersMax)

const makeError = (
  kind: VendorErrorClass,
  reported: ReportedError,
  fallback: string,
  httpStatus?: number
): VendorError =>
  new VendorError({
    class: kind,
    message: plain(
      reported.message === undefined || reported.message === "" ? fallback : reported.message
    ),
    ...(httpStatus === undefined ? {} : { httpStatus }),
    ...(reported.code === undefined ? {} : { vendorCode: plain(reported.code) }),
    ...(reported.requestId === undefined ? {} : { requestId: plain(reported.requestId) }),
    ...(reported.retryAfterMillis === undefined || kind !== "RATE_LIMITED"
      ? {}
      : { retryAfterMillis: reported.retryAfterMillis })
  })

/** With these statuses, a response from an intermediary (a firewall, a proxy) says nothing about the job. */
const intermediaryStatuses: ReadonlySet<number> = new Set([401, 402, 403, 404, 408, 410])

/**
 * The error of a response that is not 2xx. If it contains no error of the vendor, it comes from an intermediary, which
 * may have forwarded a submit. docs/reference/vendors.md#error-classes
 */
export const responseError = (
  rules: ReadonlyArray<FaultRule>,
  purpose: Purpose,
  { status }: VendorResponse,
  reported: ReportedError | undefined
): VendorError => {
  if (reported === undefined) {
    return makeError(classOfIntermediary(purpose, status), {}, `HTTP ${status}`, status)
  }
  const kind = classOf(rules, status, reported)
  return makeError(
    purpose === "query" ? classOfQuery(kind, status) : classOfSubmit(kind, status),
    reported,
    `HTTP ${status}`,
    status
  )
}

const classOfIntermediary = (purpose: Purpose, status: number): VendorErrorClass => {
  if (purpose === "submit") {
    const isDoubtful = status < 400 || (status >= 500 && status !== 503)
    return isDoubtful ? "AMBIGUOUS" : classOfStatus(status)
  }
  return status < 400 || intermediaryStatuses.has(status) ? "RETRYABLE" : classOfStatus(status)
}

/** A query has the job's own id, so it can be wrong only when the job no longer exists. */
const classOfQuery = (kind: VendorErrorClass, status: number): VendorErrorClass =>
  kind !== "GONE" && (kind === "FATAL_CLIENT" || isMissing(status)) ? "LOST" : kind

const isMissing = (status: number): boolean => status === 404 || status === 410

/**
 * If the vendor reports that a submit timed out, no job exists. A submit names only the model, so "not found" refers to
 * the model.
 */
const classOfSubmit = (kind: VendorErrorClass, status: number): VendorErrorClass => {
  if (kind === "TIMEOUT") return "RETRYABLE"
  const isUnexplained = kind === "OPERATOR" || kind === "FATAL_CLIENT"
  return isUnexplained && isMissing(status) ? "GONE" : kind
}

/**
 * Whether a rule blames the account or the model because of the message alone. The message of a failed job may quote
 * the client, who must not be able to trigger such a rule.
 */
const isBlameByWords = ({ class: kind, codes }: FaultRule): boolean =>
  codes === undefined && (kind === "OPERATOR" || kind === "GONE")

/**
 * The error of a job that the vendor reports as failed. The job has ended, so it is neither polled nor submitted again.
 */
export const jobFailed = (
  rules: ReadonlyArray<FaultRule>,
  reported: ReportedError
): VendorError => {
  const kind = classOf(
    rules.filter((rule) => !isBlameByWords(rule)),
    0,
    reported
  )
  const isOver = kind === "RETRYABLE" || kind === "RATE_LIMITED" || kind === "AMBIGUOUS"
  return makeError(isOver ? "FAILED" : kind, reported, "The job failed upstream")
}

export const noResponseError = (purpose: Purpose, { message, sent }: NoResponse): VendorError =>
  new VendorError({
    class: sent && purpose === "submit" ? "AMBIGUOUS" : "RETRYABLE",
    message: plain(message)
  })

/** The error of a 2xx response that cannot be decoded. A submit may have bought the job; a query is repeated. */
export const unreadableError = (purpose: Purpose, { status }: VendorResponse): VendorError =>
  new VendorError({
    class: purpose === "submit" ? "AMBIGUOUS" : "RETRYABLE",
    message: "The upstream's response cannot be read",
    httpStatus: status
  })

/** The job succeeded without a usable result. */
export const emptyResult = (reported: ReportedError = {}): VendorError =>
  makeError("FAILED", reported, "The upstream reported success without any result")

const utf8 = new TextDecoder()

const parseJson = Option.liftThrowable((text: string): unknown => JSON.parse(text))

/** Decodes the JSON of a response. Pass a constant schema: its decoder is created only once. */
export const readAs = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (response: VendorResponse): Option.Option<S["Type"]> =>
    Option.flatMap(parseJson(utf8.decode(response.body)), (json) => decode(json))
}

const readAnything = readAs(Schema.Unknown)

/** The JSON of a response; `undefined` if it is not valid JSON. */
export const jsonIn = (response: VendorResponse): unknown =>
  Option.getOrUndefined(readAnything(response))
