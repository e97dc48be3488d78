import { Option, Schema } from "effect"
import { at } from "../../domain/json/Json.ts"
import type { UpstreamResponse } from "../upstream/UpstreamExchange.ts"

/**
 * The beginnings of messages from Google (wrong key, 400) and Anthropic (empty balance, 400) that refuse the account.
 * Only the beginning is matched, because later text quotes the client, who must not be able to pause an account.
 */
const refusalPrefix =
  /^(?:api key (?:not valid|expired|not found)|your credit balance is too low)/iu

/** OpenAI, 401: the key is valid but lacks the scope of this one route. */
const missingScopePrefix = /^you have insufficient permissions for this operation/iu

/** A longer body is not an error. */
const errorBytesMax = 16 * 1024

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** What was refused: the account (its key or payment), or a scope that the key lacks. */
export type AccountRefusal = "account" | "scope"

const none = { code: undefined, message: undefined }

const errorOf = ({ body }: Pick<UpstreamResponse, "body">) => {
  if (!(body instanceof Uint8Array) || body.length > errorBytesMax) return none
  const error = Option.getOrUndefined(decodeJson(Buffer.from(body).toString("utf8")))
  return { code: at(error, "error", "code"), message: at(error, "error", "message") }
}

/**
 * The vendor refused the service's own account; nothing was bought.
 * docs/reference/vendors.md#accounts
 */
export const accountRefusal = (
  response: Pick<UpstreamResponse, "status" | "body">
): AccountRefusal | undefined => {
  const { status } = response
  if (status === 402) return "account"
  if (status !== 400 && status !== 401 && status !== 403 && status !== 429) return undefined
  const { code, message } = errorOf(response)
  const text = typeof message === "string" ? message : ""
  if (status === 401) return missingScopePrefix.test(text) ? "scope" : "account"
  return code === "insufficient_quota" || refusalPrefix.test(text) ? "account" : undefined
}
