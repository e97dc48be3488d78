import { Schema } from "effect"

/**
 * How a vendor's failure is to be treated (vendors.md, section C).
 *
 * - `RETRYABLE`: nothing was bought, try again
 * - `RATE_LIMITED`: nothing was bought, try again after the wait
 * - `FATAL_CLIENT`, `CONTENT`, `MEDIA`: the request itself is refused
 * - `OPERATOR`: the service's own account is at fault
 * - `FAILED`: the job ran and failed upstream
 * - `AMBIGUOUS`: the job may have been bought, never submit again
 * - `LOST`, `TIMEOUT`: the job existed and its result cannot be had
 */
export const VendorErrorClass = Schema.Literals([
  "RETRYABLE",
  "RATE_LIMITED",
  "FATAL_CLIENT",
  "CONTENT",
  "MEDIA",
  "OPERATOR",
  "FAILED",
  "AMBIGUOUS",
  "LOST",
  "TIMEOUT"
])
export type VendorErrorClass = typeof VendorErrorClass.Type

/** Every failure of a vendor; callers branch on `class`. */
export class VendorError extends Schema.TaggedError<VendorError>()("VendorError", {
  class: VendorErrorClass,
  /** The upstream's words, not yet sanitized. */
  message: Schema.String,
  /** Of the answer that is the failure; absent when a job's failure is told in a good one. */
  httpStatus: Schema.optionalKey(Schema.Int),
  vendorCode: Schema.optionalKey(Schema.String),
  /** The upstream's request id, for the log. */
  requestId: Schema.optionalKey(Schema.String),
  /** Only with `RATE_LIMITED`: how long the vendor asked to wait, in milliseconds. */
  retryAfterMillis: Schema.optionalKey(Schema.Finite)
}) {}
