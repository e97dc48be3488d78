import {
  batches,
  batchFailure as failure,
  batchModelOf,
  isBatchCreate,
  submitBatch
} from "./AnthropicBatchProtocol.ts"
import type { Protocol } from "./Protocol.ts"
import { textAt } from "./VendorRequest.ts"

/**
 * Language models, whose responses are simulated, and batches of them: docs/reference/vendors.md#anthropic-messages,
 * docs/reference/vendors.md#anthropic-batches
 */
export const anthropic: Protocol = {
  key: "sk-ant-test-0001",
  isSubmit: isBatchCreate,
  modelOf: (request) => batchModelOf(request) ?? textAt(request.json, "model") ?? "",
  stranger: ({ headers }, key) => {
    // The official client of 2026 sends the key as a bearer token; older ones send `x-api-key`
    if (headers["x-api-key"] !== key && headers.authorization !== `Bearer ${key}`) {
      return failure(401, "authentication_error", "invalid x-api-key")
    }
    return headers["anthropic-version"] === undefined
      ? failure(400, "invalid_request_error", "anthropic-version: header is required")
      : undefined
  },
  refusal: (kind, message) => {
    switch (kind) {
      case "RATE_LIMITED":
        return failure(429, "rate_limit_error", message ?? "Number of requests has exceeded.")
      case "RETRYABLE":
        return failure(529, "overloaded_error", message ?? "Overloaded")
      case "OPERATOR":
        return failure(402, "billing_error", message ?? "Your credit balance is too low.")
      case "GONE":
        return failure(404, "not_found_error", message ?? "model: not found")
      case "CONTENT":
      case "FATAL_CLIENT":
      case "MEDIA":
        return failure(400, "invalid_request_error", message ?? "messages: not permitted")
      default:
        return undefined
    }
  },
  jobFailures: new Set(),
  respond: (request, vendor) =>
    isBatchCreate(request) ? submitBatch(request, vendor) : batches(request, vendor)
}
