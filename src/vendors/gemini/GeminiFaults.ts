import { Option, Schema } from "effect"
import { readAs } from "../Faults.ts"
import type { FaultRule, Refusal } from "../Faults.ts"
import { maybe } from "../OptionalField.ts"
import type { VendorAnswer } from "../VendorHttp.ts"

/** vendors.md A2: block forms (inside a 200) and the statuses of Google's errors. */
export const rules: ReadonlyArray<FaultRule> = [
  {
    codes: ["SAFETY", "IMAGE_SAFETY", "PROHIBITED_CONTENT", "IMAGE_PROHIBITED_CONTENT"],
    class: "CONTENT"
  },
  { codes: ["BLOCKLIST", "SPII", "RECITATION", "IMAGE_RECITATION"], class: "CONTENT" },
  { codes: ["NO_IMAGE", "IMAGE_OTHER", "OTHER", "MAX_TOKENS", "STOP"], class: "FAILED" },
  { says: /api key (?:not valid|expired|not found)/iu, class: "OPERATOR" },
  { codes: ["FAILED_PRECONDITION"], says: /billing|location|free tier/iu, class: "OPERATOR" },
  { codes: ["INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"], class: "FATAL_CLIENT" },
  { codes: ["UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"], class: "OPERATOR" },
  { codes: ["RESOURCE_EXHAUSTED"], class: "RATE_LIMITED" },
  { codes: ["INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"], class: "RETRYABLE" }
]

/** `promptFeedback.blockReason`: whatever it says. */
export const blockedPrompt: ReadonlyArray<FaultRule> = [{ class: "CONTENT" }]

const Failure = Schema.Struct({
  error: Schema.Struct({
    message: maybe(Schema.String),
    status: maybe(Schema.String),
    details: maybe(Schema.Array(Schema.Struct({ retryDelay: maybe(Schema.String) })))
  })
})
const read = readAs(Failure)

/** "46s" of RetryInfo, or "Please retry in 46.2s" of the message. Milliseconds. */
const waitOf = (delay: string | undefined, message: string | undefined): number | undefined => {
  const match =
    /^([\d.]+)s$/u.exec(delay ?? "") ?? /retry in ([\d.]+)s/iu.exec(message ?? "") ?? undefined
  const seconds = Number(match?.[1] ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}

export const refusalOf = (answer: VendorAnswer): Refusal | undefined =>
  Option.getOrUndefined(
    Option.map(read(answer), ({ error: { details, message, status } }) => ({
      code: status,
      message,
      retryAfterMillis: waitOf(
        details?.map(({ retryDelay }) => retryDelay).find((it) => it !== undefined),
        message
      )
    }))
  )
