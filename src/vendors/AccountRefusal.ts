import { Option, Schema } from "effect"
import { at } from "../domain/Json.ts"
import type { UpstreamAnswer } from "./UpstreamExchange.ts"

/**
 * How Google (a wrong key, 400) and Anthropic (an empty balance, 400) begin to say that it is the
 * service's account that they refuse. Only as a beginning: further on, errors quote the client, who
 * must not be able to have an account left alone.
 */
const begins = /^(?:api key (?:not valid|expired|not found)|your credit balance is too low)/iu

/** An error is short; what is longer is something else. */
const errorBytesMax = 16 * 1024

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** The vendor refused the account, its key or its payment: nothing was bought. ADR 0071; vendors.md A2 to A4. */
export const isAccountRefused = ({ body, status }: UpstreamAnswer): boolean => {
  if (status === 401 || status === 402) return true
  if (status !== 400 && status !== 403 && status !== 429) return false
  if (!(body instanceof Uint8Array) || body.length > errorBytesMax) return false
  const error = Option.getOrUndefined(decodeJson(Buffer.from(body).toString("utf8")))
  const message = at(error, "error", "message")
  return (
    at(error, "error", "code") === "insufficient_quota" ||
    (typeof message === "string" && begins.test(message))
  )
}
