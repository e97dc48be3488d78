import type { Reply } from "./Protocol.ts"
import type { VendorRequest } from "./VendorRequest.ts"

/** An error in OpenAI's format. */
export const failure = (
  status: number,
  type: string,
  code: string | null,
  message: string
): Reply => ({
  status,
  headers: { "x-request-id": "req_1" },
  json: { error: { message, type, param: null, code } }
})

export const invalid = (message: string): Reply =>
  failure(400, "invalid_request_error", "invalid_value", message)

/** The fields of a JSON or form body, as strings. */
export const fieldsOf = ({ form, json }: VendorRequest): ReadonlyMap<string, string> =>
  typeof json === "object" && json !== null
    ? new Map(Object.entries(json).map(([name, value]) => [name, String(value)]))
    : new Map(Array.from(form, ([name, [part]]) => [name, part?.text ?? ""]))
