import * as Credits from "../../domain/Credits.ts"
import { skippedText } from "../../domain/task/Candidate.ts"
import type { Relayed } from "../../passthrough/PassthroughCall.ts"

/** The names of the gateway's own response headers. */
export interface HeaderNames {
  readonly cost: string
  readonly call: string
  readonly sandbox: string
  readonly left: string
  readonly model: string
  readonly skipped: string
}

export const headerNames = (serviceName: string): HeaderNames => {
  const name = (what: string) => `x-${serviceName}-${what}`.toLowerCase()
  return {
    cost: name("cost"),
    call: name("call-id"),
    sandbox: name("sandbox"),
    left: name("budget-remaining"),
    model: name("model"),
    skipped: name("skipped")
  }
}

/** The vendor's headers, and the gateway's own. */
export const responseHeaders = (
  { by, callId, cost, ending, headers, left, sandbox }: Relayed,
  names: HeaderNames
): Record<string, string> => {
  if (sandbox) headers[names.sandbox] = "true"
  if (callId !== undefined) headers[names.call] = callId
  if (cost !== undefined) headers[names.cost] = Credits.format(cost)
  if (left !== undefined) headers[names.left] = Credits.format(left)
  if (by !== undefined) {
    headers[names.model] = by.model
    if (by.skipped.length > 0) headers[names.skipped] = skippedText(by.skipped)
  }
  if (ending !== undefined) {
    headers["deprecation"] = ending.deprecation
    headers["sunset"] = ending.sunset
  }
  return headers
}

/** For a response without a content type. */
export const defaultContentType = "application/json"
