import { Option, Schema } from "effect"
import { readAs } from "../Faults.ts"
import type { FaultRule, Refusal } from "../Faults.ts"
import { maybe } from "../OptionalField.ts"
import type { VendorAnswer } from "../VendorHttp.ts"

/** vendors.md A1, HTTP / code. The first row that fits decides; codes hold in polls and answers alike. */
export const rules: ReadonlyArray<FaultRule> = [
  // Media that the upstream could not fetch. Not moderation, despite the first name
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
    codes: ["Workspace.AccessDenied", "AllocationQuota.FreeTierOnly", "ModelNotFound*"],
    class: "OPERATOR"
  },
  {
    codes: ["PrepaidBillOverdue", "PostpaidBillOverdue", "CommodityNotPurchased"],
    class: "OPERATOR"
  },
  {
    codes: ["Throttling.AllocationQuota"],
    says: /free allocated quota exceeded/iu,
    class: "OPERATOR"
  },
  { codes: ["Throttling*", "LimitRequests"], class: "RATE_LIMITED" },
  { codes: ["InternalError.Timeout"], class: "TIMEOUT" },
  {
    codes: ["InternalError*", "SystemError", "ModelServiceFailed", "RewriteFailed"],
    class: "RETRYABLE"
  },
  { codes: ["RequestTimeOut", "ModelServingError", "ModelUnavailable"], class: "RETRYABLE" },
  {
    codes: ["InvalidParameter*", "BadRequest*", "InvalidImage*", "InvalidFile*", "InvalidURL*"],
    class: "FATAL_CLIENT"
  }
]

const Failure = Schema.Struct({
  code: Schema.String,
  message: maybe(Schema.String),
  request_id: maybe(Schema.String)
})
const read = readAs(Failure)

/** `{code, message, request_id}`: what every refusal of DashScope looks like. */
export const refusalOf = (answer: VendorAnswer): Refusal | undefined =>
  Option.getOrUndefined(
    Option.map(read(answer), ({ code, message, request_id: requestId }) => ({
      code,
      message,
      requestId
    }))
  )
