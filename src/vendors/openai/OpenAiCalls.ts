import { Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../Bases.ts"
import { readAs } from "../Faults.ts"
import type { FaultRule, Refusal } from "../Faults.ts"
import { maybe } from "../OptionalField.ts"
import type { Dialect } from "../VendorCall.ts"
import type { VendorAnswer } from "../VendorHttp.ts"

/** vendors.md A3: codes first, then types. */
export const rules: ReadonlyArray<FaultRule> = [
  { codes: ["insufficient_quota", "billing_*", "invalid_api_key", "account_*"], class: "OPERATOR" },
  { codes: ["model_not_found", "organization_*", "unsupported_country_*"], class: "OPERATOR" },
  { codes: ["content_policy_violation", "moderation_blocked", "sentinel_block"], class: "CONTENT" },
  { says: /safety system|content policy|moderation/iu, class: "CONTENT" },
  { codes: ["rate_limit_*"], class: "RATE_LIMITED" },
  { codes: ["server_error", "internal_error"], class: "RETRYABLE" },
  { codes: ["invalid_*", "unsupported_*"], class: "FATAL_CLIENT" }
]

const Failure = Schema.Struct({
  error: Schema.Struct({
    message: maybe(Schema.String),
    type: maybe(Schema.String),
    code: maybe(Schema.String)
  })
})
const read = readAs(Failure)

const refusalOf = (answer: VendorAnswer): Refusal | undefined =>
  Option.getOrUndefined(
    Option.map(read(answer), ({ error: { code, message, type } }) => ({
      code: code ?? type,
      message,
      requestId: answer.headers["x-request-id"]
    }))
  )

export const baseOf = ({ account }: AdapterContext): string => withVersion(account.baseUrl, "/v1")

export const dialectOf = ({ auth, observeResponse, http }: AdapterContext): Dialect => ({
  http,
  headers: auth,
  rules,
  refusalOf,
  observeResponse
})

/** The upstream's `WxH` of the same orientation as our `W*H`, or the square one. */
export const orientationOf = (size: string | null | undefined): "wide" | "tall" | "square" => {
  const [width = 1, height = 1] = (size ?? "").split("*").map(Number)
  if (!(width > 0 && height > 0) || width === height) return "square"
  return width > height ? "wide" : "tall"
}
