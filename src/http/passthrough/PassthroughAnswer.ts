import * as Credits from "../../domain/Credits.ts"
import type { Relayed } from "../../passthrough/Passthrough.ts"

/** What the gateway's own headers are called. */
export interface HeaderNames {
  readonly cost: string
  readonly call: string
  readonly sandbox: string
}

export const namesOf = (serviceName: string): HeaderNames => {
  const name = (what: string) => `x-${serviceName}-${what}`.toLowerCase()
  return { cost: name("cost"), call: name("call-id"), sandbox: name("sandbox") }
}

/** The vendor's headers, and the gateway's own. */
export const headersOf = (
  { callId, cost, headers, sandbox }: Relayed,
  names: HeaderNames
): Record<string, string> => {
  if (sandbox) headers[names.sandbox] = "true"
  if (callId !== undefined) headers[names.call] = callId
  if (cost !== undefined) headers[names.cost] = Credits.format(cost)
  return headers
}

/** What an answer without a type is. */
export const usualType = "application/json"
