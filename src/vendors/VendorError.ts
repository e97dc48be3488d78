import { Schema } from "effect"

/**
 * How the gateway treats a vendor's failure. docs/reference/vendors.md#error-classes
 *
 * - `RETRYABLE`: nothing was bought, try again
 * - `RATE_LIMITED`: nothing was bought, try again after `retryAfterMillis`
 * - `FATAL_CLIENT`, `CONTENT`, `MEDIA`: the request itself is refused
 * - `OPERATOR`: the service's own account is refused
 * - `GONE`: the vendor no longer has the model; an operator fault of that model alone
 * - `FAILED`: the job ran and failed upstream
 * - `AMBIGUOUS`: the job may have been bought, never submit again
 * - `LOST`, `TIMEOUT`: the job existed and has no result
 */
export const VendorErrorClass = Schema.Literals([
  "RETRYABLE",
  "RATE_LIMITED",
  "FATAL_CLIENT",
  "CONTENT",
  "MEDIA",
  "OPERATOR",
  "GONE",
  "FAILED",
  "AMBIGUOUS",
  "LOST",
  "TIMEOUT"
])
export type VendorErrorClass = typeof VendorErrorClass.Type

/** Every failure of a vendor; callers branch on `class`. */
export class VendorError extends Schema.TaggedError<VendorError>()("VendorError", {
  class: VendorErrorClass,
  /** The upstream's message without secrets. `Faults` creates every vendor error and sanitizes its message. */
  message: Schema.String,
  /** Status of the response; absent when a 200 reports the failure of a job. */
  httpStatus: Schema.optionalKey(Schema.Int),
  vendorCode: Schema.optionalKey(Schema.String),
  /** The upstream's request id, for the log. */
  requestId: Schema.optionalKey(Schema.String),
  /** The wait that the vendor asked for; set only with `RATE_LIMITED`. */
  retryAfterMillis: Schema.optionalKey(Schema.Finite)
}) {}

/** The code of the fault that the account of a job was removed from the configuration and its key cannot be read. */
export const accountMissing = "account_missing"
