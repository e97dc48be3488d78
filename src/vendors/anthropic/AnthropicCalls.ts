import { Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../BaseUrl.ts"
import { readAs } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import { optionalField } from "../OptionalField.ts"
import type { VendorApi } from "../VendorCall.ts"
import type { VendorResponse } from "../VendorHttp.ts"

/** docs/reference/vendors.md#anthropic-errors */
const rules: ReadonlyArray<FaultRule> = [
  { codes: ["authentication_error", "permission_error", "billing_error"], class: "OPERATOR" },
  { message: /credit balance is too low/iu, class: "OPERATOR" },
  { codes: ["not_found_error"], message: /^model: /iu, class: "GONE" },
  { codes: ["rate_limit_error"], class: "RATE_LIMITED" },
  { codes: ["overloaded_error", "api_error", "timeout_error"], class: "RETRYABLE" },
  { codes: ["invalid_request_error", "request_too_large"], class: "FATAL_CLIENT" }
]

const Failure = Schema.Struct({
  error: Schema.Struct({
    message: optionalField(Schema.String),
    type: optionalField(Schema.String)
  })
})
const read = readAs(Failure)

const reportedError = (response: VendorResponse): ReportedError | undefined =>
  Option.getOrUndefined(
    Option.map(read(response), ({ error: { message, type } }) => ({
      code: type,
      message,
      requestId: response.headers["request-id"]
    }))
  )

export const baseOf = ({ account }: AdapterContext): string => withVersion(account.baseUrl, "/v1")

export const apiOf = ({ auth, http, observeResponse }: AdapterContext): VendorApi => ({
  http,
  headers: auth,
  rules,
  reportedError,
  observeResponse
})
