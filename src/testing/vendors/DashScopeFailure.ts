import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import type { Reply } from "./Protocol.ts"

/** An error in DashScope's format. */
export const failure = (status: number, code: string, message: string): Reply => ({
  status,
  json: { code, message, request_id: "4909100c-7b5a-9f92-bfe5-000000000000" }
})

export const invalid = (what: string) => failure(400, "InvalidParameter", what)

/** The code and message of a failed job, by class. */
const failures: ReadonlyMap<VendorErrorClass, readonly [code: string, words: string]> = new Map([
  ["CONTENT", ["DataInspectionFailed", "Blocked."]],
  ["MEDIA", ["InvalidParameter.DataInspection", "Unable to download the media resource"]],
  ["FATAL_CLIENT", ["InvalidParameter", "size must be in the list"]],
  ["TIMEOUT", ["InternalError.Timeout", "The task took too long."]],
  ["FAILED", ["InternalError.Algo", "inference error"]]
])

export interface JobFailure {
  readonly code: string
  readonly message: string
}

export const jobFailures: ReadonlySet<VendorErrorClass> = new Set([...failures.keys(), "LOST"])

/** How the vendor reports a failed job. */
export const jobFailure = (kind: VendorErrorClass, message?: string): JobFailure => {
  const [code, words] = failures.get(kind) ?? ["InternalError.Algo", "inference error"]
  return { code, message: message ?? words }
}

/** How the vendor refuses a request. */
export const refusal = (kind: VendorErrorClass, message?: string): Reply | undefined => {
  const of = (status: number, code: string, words: string) =>
    failure(status, code, message ?? words)
  switch (kind) {
    case "RATE_LIMITED":
      return of(
        429,
        "Throttling.RateQuota",
        "Requests rate limit exceeded, please try again later."
      )
    case "RETRYABLE":
      return of(503, "ModelServingError", "Too many requests. Your requests are being throttled.")
    case "OPERATOR":
      return of(
        400,
        "Arrearage",
        "Access denied, please make sure your account is in good standing."
      )
    case "GONE":
      return of(404, "ModelNotFound", "Model can not be found.")
    case "CONTENT":
      return of(400, "DataInspectionFailed", "Input data may contain inappropriate content.")
    case "FATAL_CLIENT":
    case "MEDIA": {
      const { code, message: words } = jobFailure(kind, message)
      return of(400, code, words)
    }
    default:
      return undefined
  }
}
