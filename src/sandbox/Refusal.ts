import type { Provider } from "../domain/Provider.ts"

/** The vendor's 400, in its own format. */
export const refusalOf = (provider: Provider, message: string): unknown => {
  switch (provider) {
    case "anthropic":
      return {
        type: "error",
        error: { type: "invalid_request_error", message },
        request_id: "req_simulated"
      }
    case "gemini":
      return { error: { code: 400, message, status: "INVALID_ARGUMENT" } }
    default:
      return { error: { message, type: "invalid_request_error", param: null, code: null } }
  }
}
