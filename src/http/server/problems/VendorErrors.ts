import { namesIn } from "../../../catalog/FieldFaults.ts"
import { isFinal, statusOf } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import type { Place } from "../../passthrough/PassthroughTarget.ts"

/** OpenAI's `type`. */
const openAiType = (status: number): string => {
  if (status === 401) return "authentication_error"
  if (status === 403) return "permission_error"
  if (status === 402) return "insufficient_quota"
  if (status === 429) return "rate_limit_error"
  return status >= 500 ? "server_error" : "invalid_request_error"
}

const anthropicTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error"
}

const anthropicType = (status: number): string =>
  anthropicTypes[status] ?? (status >= 500 ? "api_error" : "invalid_request_error")

const googleStatuses: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  402: "FAILED_PRECONDITION",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  409: "ABORTED",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  504: "DEADLINE_EXCEEDED"
}

const googleStatus = (status: number): string =>
  googleStatuses[status] ?? (status >= 500 ? "UNAVAILABLE" : "INVALID_ARGUMENT")

/** A pointer as OpenAI writes it: `messages[0].content` for `#/messages/0/content`; `null` for the whole body. */
const paramOf = (pointer: string): string | null => {
  const names = namesIn(pointer.replace(/^#\/(?:query|headers)\//u, "#/"))
  const path = names.map((name) => (/^\d+$/u.test(name) ? `[${name}]` : `.${name}`)).join("")
  return path === "" ? null : path.replace(/^\./u, "")
}

/**
 * Members of a problem for the vendor's own clients, on that vendor's routes. Anthropic's clients also need `type` to
 * be `error`, which is a valid URI reference. docs/reference/errors.md#error-members-of-the-vendors
 */
export const vendorMembers = (fault: Problem, { vendor }: Place, traceId: string): object => {
  const status = statusOf(fault)
  const message = fault.detail
  switch (vendor) {
    case "openai": {
      const param = paramOf(fault.errors?.[0]?.pointer ?? "#")
      return { error: { message, type: openAiType(status), param, code: String(fault.code) } }
    }
    case "anthropic": {
      const error = { type: anthropicType(status), message }
      return { type: "error", error, request_id: traceId }
    }
    case "google":
      return { error: { code: status, message, status: googleStatus(status) } }
    default:
      return {}
  }
}

const shapes: ReadonlySet<string> = new Set(["openai", "anthropic", "google"])

/** Headers of a problem for the vendor's own clients. docs/reference/errors.md#headers-of-errors */
export const vendorHeaders = (
  status: number,
  { vendor }: Place,
  traceId: string
): Record<string, string> => ({
  ...(shapes.has(vendor) && isFinal(status) ? { "x-should-retry": "false" } : {}),
  ...(vendor === "openai" ? { "x-request-id": traceId } : {}),
  ...(vendor === "anthropic" ? { "request-id": traceId } : {})
})
