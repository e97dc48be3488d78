import * as Credits from "../../domain/Credits.ts"
import type { Relayed } from "../../passthrough/Passthrough.ts"

/** The names of the gateway's own response headers. */
export interface HeaderNames {
  readonly cost: string
  readonly call: string
  readonly sandbox: string
  readonly left: string
}

export const headerNames = (serviceName: string): HeaderNames => {
  const name = (what: string) => `x-${serviceName}-${what}`.toLowerCase()
  return {
    cost: name("cost"),
    call: name("call-id"),
    sandbox: name("sandbox"),
    left: name("budget-remaining")
  }
}

/** The vendor's headers, and the gateway's own. */
export const responseHeaders = (
  { callId, cost, ending, headers, left, sandbox }: Relayed,
  names: HeaderNames
): Record<string, string> => {
  if (sandbox) headers[names.sandbox] = "true"
  if (callId !== undefined) headers[names.call] = callId
  if (cost !== undefined) headers[names.cost] = Credits.format(cost)
  if (left !== undefined) headers[names.left] = Credits.format(left)
  if (ending !== undefined) {
    headers["deprecation"] = ending.deprecation
    headers["sunset"] = ending.sunset
  }
  return headers
}

/** For a response without a content type. */
export const defaultContentType = "application/json"
