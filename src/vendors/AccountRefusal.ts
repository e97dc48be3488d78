import { Option, Schema } from "effect"
import { at } from "../domain/Json.ts"
import type { UpstreamResponse } from "./UpstreamExchange.ts"

/**
 * Messages of Google (wrong key, 400) and Anthropic (empty balance, 400) that refuse the account. Matched
 * at the beginning only: later text quotes the client, who must not be able to pause an account.
 */
const refusalPrefix =
  /^(?:api key (?:not valid|expired|not found)|your credit balance is too low)/iu

/** A longer body is not an error. */
const errorBytesMax = 16 * 1024

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/**
 * The vendor refused the account, its key or its payment; nothing was bought.
 * docs/reference/vendors.md#accounts
 */
export const isAccountRefused = ({ body, status }: UpstreamResponse): boolean => {
  if (status === 401 || status === 402) return true
  if (status !== 400 && status !== 403 && status !== 429) return false
  if (!(body instanceof Uint8Array) || body.length > errorBytesMax) return false
  const error = Option.getOrUndefined(decodeJson(Buffer.from(body).toString("utf8")))
  const message = at(error, "error", "message")
  return (
    at(error, "error", "code") === "insufficient_quota" ||
    (typeof message === "string" && refusalPrefix.test(message))
  )
}
