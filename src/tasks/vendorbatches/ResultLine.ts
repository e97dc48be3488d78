import { Option, Schema } from "effect"
import { digestOf } from "../../catalog/bodies/BatchRequests.ts"
import type { BatchRequest } from "../../catalog/bodies/BatchRequests.ts"
import type { TokenModel, UsageProtocol } from "../../catalog/OpenRoutes.ts"
import { batchPriceOf, chargeTokens } from "../../catalog/Price.ts"
import type { TokenPrice, TokenUsage } from "../../catalog/Price.ts"
import { settledPrice } from "../../catalog/SettledPrice.ts"
import type { UpstreamCatalog } from "../../catalog/UpstreamCatalog.ts"
import { credibleUsage, responderOf, usageOf } from "../../catalog/Usage.ts"
import { zero } from "../../domain/Credits.ts"
import type { Credits } from "../../domain/Credits.ts"
import { at } from "../../domain/json/Json.ts"
import { customIdCharactersMax } from "../../domain/limits/FileLimits.ts"
import type { Line } from "../../domain/Lines.ts"
import type { BatchReceipt } from "./VendorBatchStore.ts"

/** What prices the results of a batch: the prices valid when it was created. */
export interface BatchPricing {
  readonly catalog: UpstreamCatalog
  readonly protocol: UsageProtocol
  /** The vendor's account that has the batch. */
  readonly account: string
  /** The requests of the batch, by the digests of their `custom_id`s. */
  readonly requests: ReadonlyMap<string, BatchRequest>
  readonly modelOf: (request: BatchRequest) => BatchModel
  readonly nowMillis: number
}

export interface BatchModel {
  /** The name that the requests use. */
  readonly name: string
  readonly model: TokenModel
  readonly price: TokenPrice
}

/** The vendors' rule of thumb for estimates. docs/reference/passthrough.md#metering */
const bytesPerToken = 4

const parse = Option.liftThrowable((text: string): unknown => JSON.parse(text))

const Named = Schema.Struct({
  custom_id: Schema.NonEmptyString.check(Schema.isMaxLength(customIdCharactersMax))
})
const decodeNamed = Schema.decodeUnknownOption(Named)

/** The receipt for a line of the vendor's results. `None`: the line is not the result of a request of this batch. */
export const receiptOf = (pricing: BatchPricing, line: Line): Option.Option<BatchReceipt> => {
  const value =
    line.tail === undefined ? parse(line.bytes.toString("utf8")) : longLine(pricing, line)
  return Option.flatMap(value, (it) =>
    Option.flatMap(decodeNamed(it), ({ custom_id: customId }) => {
      const digest = digestOf(customId)
      const request = pricing.requests.get(digest)
      if (request === undefined) return Option.none()
      const model = pricing.modelOf(request)
      const charge = chargeOf(pricing, request, model, { value: it, bytes: line.length })
      return Option.some({ digest, customId, model: model.name, ...charge })
    })
  )
}

/** The status, request id and response of a result, as far as it has them. */
const responseIn = (protocol: UsageProtocol, value: unknown) => {
  if (protocol === "anthropic-messages") return messageIn(at(value, "result"))
  const status = at(value, "response", "status_code")
  const requestId = at(value, "response", "request_id")
  return {
    status: typeof status === "number" && Number.isInteger(status) ? status : null,
    requestId: typeof requestId === "string" ? requestId.slice(0, 128) : null,
    body: at(value, "response", "body")
  }
}

/** A succeeded Anthropic result contains a message; other results have no status. */
const messageIn = (result: unknown) => {
  const isMade = at(result, "type") === "succeeded"
  const requestId = isMade ? at(result, "message", "id") : at(result, "error", "request_id")
  return {
    status: isMade ? 200 : null,
    requestId: typeof requestId === "string" ? requestId.slice(0, 128) : null,
    body: at(result, "message")
  }
}

const chargeOf = (
  pricing: BatchPricing,
  asked: BatchRequest,
  { model, name, price }: BatchModel,
  { bytes, value }: { readonly value: unknown; readonly bytes: number }
): Omit<BatchReceipt, "customId" | "digest" | "model"> => {
  const { body, requestId, status } = responseIn(pricing.protocol, value)
  if (status === null || status < 200 || status >= 300) {
    return { outcome: "released", status, requestId, cost: zero, usage: null }
  }
  const { account, catalog, nowMillis, protocol } = pricing
  const reported = credibleUsage(usageOf(protocol, body), model, account)
  const usage = reported ?? counted(asked, bytes)
  const request = { catalog, model, price, nowMillis, fallbacks: [] }
  const settled = settledPrice(request, name, responderOf(protocol, body))
  // The responding model may differ from the requested one, and may have no batch price
  const charged = settled.pricedAs === undefined ? price : batchPriceOf(settled.price)
  const pricedAs = charged === undefined ? undefined : settled.pricedAs
  return {
    outcome: "settled",
    status,
    requestId,
    cost: bounded(asked, chargeTokens(charged ?? price, usage)),
    usage: {
      ...usage,
      counted: reported === undefined,
      ...(pricedAs === undefined ? {} : { pricedAs })
    }
  }
}

/** At most what is held for the request, like a call. */
const bounded = ({ hold }: BatchRequest, cost: Credits): Credits =>
  hold !== undefined && cost > hold ? hold : cost

const counted = ({ bytes: requestBytes }: BatchRequest, bytes: number): TokenUsage => ({
  inputTokens: Math.ceil(requestBytes / bytesPerToken),
  outputTokens: Math.ceil(bytes / bytesPerToken)
})

/**
 * Extracts what it can from a line that is too long to parse: `custom_id` and status are at its beginning, the usage
 * figures at its end. Quotes inside a JSON string are escaped, so these patterns match only real members.
 */
const longLine = ({ protocol }: BatchPricing, { bytes, tail }: Line): Option.Option<unknown> => {
  const head = bytes.toString("utf8")
  const name = /"custom_id"\s*:\s*("(?:[^"\\]|\\.)*")/u.exec(head)?.[1]
  const status = /"status_code"\s*:\s*(\d{3})/u.exec(head)?.[1]
  if (name === undefined) return Option.none()
  const end = tail?.toString("utf8") ?? ""
  const figures = /(?<!\\)"usage"\s*:\s*(\{(?:[^{}]|\{[^{}]*\})*\})/gu
  const usage = [...end.matchAll(figures)].at(-1)?.[1]
  const body = { usage: usage === undefined ? undefined : Option.getOrUndefined(parse(usage)) }
  if (protocol === "anthropic-messages") {
    const type = /"result"\s*:\s*\{\s*"type"\s*:\s*"(\w+)"/u.exec(head)?.[1]
    return Option.map(parse(name), (customId) => ({
      custom_id: customId,
      result: { type, message: body }
    }))
  }
  return Option.map(parse(name), (customId) => ({
    custom_id: customId,
    response: {
      status_code: status === undefined ? null : Number(status),
      body
    }
  }))
}
