import { Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../BaseUrl.ts"
import { readAs } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import { optionalField } from "../OptionalField.ts"
import type { VendorApi } from "../VendorCall.ts"
import type { VendorResponse } from "../VendorHttp.ts"

/** The code decides, else the type. docs/reference/vendors.md#openai-errors */
export const rules: ReadonlyArray<FaultRule> = [
  { codes: ["insufficient_quota", "billing_*", "invalid_api_key", "account_*"], class: "OPERATOR" },
  { codes: ["organization_*", "unsupported_country_*"], class: "OPERATOR" },
  { codes: ["model_not_found", "model_deprecated"], class: "GONE" },
  { message: /^the model \S+ (?:does not exist|has been deprecated)/iu, class: "GONE" },
  { codes: ["content_policy_violation", "moderation_blocked", "sentinel_block"], class: "CONTENT" },
  { message: /safety system|content policy|moderation/iu, class: "CONTENT" },
  { codes: ["rate_limit_*"], class: "RATE_LIMITED" },
  { codes: ["server_error", "internal_error"], class: "RETRYABLE" },
  { codes: ["invalid_*", "unsupported_*"], class: "FATAL_CLIENT" }
]

const Failure = Schema.Struct({
  error: Schema.Struct({
    message: optionalField(Schema.String),
    type: optionalField(Schema.String),
    code: optionalField(Schema.String)
  })
})
const read = readAs(Failure)

const reportedError = (response: VendorResponse): ReportedError | undefined =>
  Option.getOrUndefined(
    Option.map(read(response), ({ error: { code, message, type } }) => ({
      code: code ?? type,
      message,
      requestId: response.headers["x-request-id"]
    }))
  )

export const baseOf = ({ account }: AdapterContext): string => withVersion(account.baseUrl, "/v1")

export const apiOf = ({ auth, observeResponse, http }: AdapterContext): VendorApi => ({
  http,
  headers: auth,
  rules,
  reportedError,
  observeResponse
})
