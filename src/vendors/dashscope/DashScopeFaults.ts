import { Option, Schema } from "effect"
import { readAs } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import { optionalField } from "../OptionalField.ts"
import type { VendorResponse } from "../VendorHttp.ts"

/**
 * The first matching row decides; the codes are the same in polls.
 * docs/reference/vendors.md#dashscope-errors
 */
export const rules: ReadonlyArray<FaultRule> = [
  // The upstream could not fetch the media. Despite its name, the first code is not about moderation
  {
    codes: [
      "InvalidParameter.DataInspection",
      "InvalidURL.Timeout",
      "InvalidURL.ConnectionRefused",
      "BadRequest.InputDownloadFailed"
    ],
    class: "MEDIA"
  },
  {
    codes: [
      "DataInspectionFailed*",
      "IPInfringementSuspect",
      "CustomRoleBlocked",
      "FaqRuleBlocked"
    ],
    class: "CONTENT"
  },
  {
    codes: ["Arrearage", "InvalidApiKey", "AccessDenied*", "Model.AccessDenied"],
    class: "OPERATOR"
  },
  {
    codes: ["Workspace.AccessDenied", "AllocationQuota.FreeTierOnly"],
    class: "OPERATOR"
  },
  {
    codes: ["PrepaidBillOverdue", "PostpaidBillOverdue", "CommodityNotPurchased"],
    class: "OPERATOR"
  },
  {
    codes: ["Throttling.AllocationQuota"],
    message: /free allocated quota exceeded/iu,
    class: "OPERATOR"
  },
  { codes: ["Throttling*", "LimitRequests"], class: "RATE_LIMITED" },
  { codes: ["InternalError.Timeout"], class: "TIMEOUT" },
  {
    codes: ["InternalError*", "SystemError", "ModelServiceFailed", "RewriteFailed"],
    class: "RETRYABLE"
  },
  { codes: ["RequestTimeOut", "ModelServingError", "ModelUnavailable"], class: "RETRYABLE" },
  { codes: ["ModelNotFound*", "model_not_found"], class: "GONE" },
  // Matched only at the beginning: the rest of a message may quote the client
  {
    codes: ["InvalidParameter*", "BadRequest*"],
    message: /^(?:the )?model (?:\S+ )?(?:does )?not exist/iu,
    class: "GONE"
  },
  {
    codes: ["InvalidParameter*", "BadRequest*", "InvalidImage*", "InvalidFile*", "InvalidURL*"],
    class: "FATAL_CLIENT"
  }
]

const Failure = Schema.Struct({
  code: Schema.String,
  message: optionalField(Schema.String),
  request_id: optionalField(Schema.String)
})
const read = readAs(Failure)

export const reportedError = (response: VendorResponse): ReportedError | undefined =>
  Option.getOrUndefined(
    Option.map(read(response), ({ code, message, request_id: requestId }) => ({
      code,
      message,
      requestId
    }))
  )
