import { Result } from "effect"
import type { UsageProtocol } from "../catalog/OpenRoutes.ts"
import { errorDetailCharactersMax } from "../domain/limits/Limits.ts"
import { hiddenText, hideSecrets, sanitize } from "../domain/VendorText.ts"
import { isPage } from "../vendors/upstream/UpstreamExchange.ts"

/** A longer body is not a machine-readable error: only its beginning is relayed, as a message. */
const jsonBytesMax = 64 * 1024
const depthMax = 16

/** Members that contain a credential or the owner of the account, whatever their value looks like. */
const secretMember =
  /^(?:[\w-]*[-_])?(?:(?:api|access|secret|private)[-_]?key|secret|token|password|signature|authorization|account|organi[sz]ation|org|project|workspace|tenant|customer|consumer|container_?info|uid|user)(?:[-_]?(?:id|number|name|uid|no))?$/iu

const utf8 = new TextEncoder()
const decoder = new TextDecoder()

/**
 * The body of a vendor's refusal as the client receives it: always JSON, without information that only the operator
 * may see. A body with nothing to hide stays unchanged; a page or other text becomes the message of an error in the
 * vendors' format. docs/reference/passthrough.md#errors
 */
export const errorBody = (
  status: number,
  headers: Record<string, string>,
  body: Uint8Array
): Uint8Array => {
  if (body.length === 0) return body
  const page = isPage(headers["content-type"])
  headers["content-type"] = page
    ? "application/json"
    : (headers["content-type"] ?? "application/json")
  const text = decoder.decode(body.subarray(0, jsonBytesMax))
  const json = body.length > jsonBytesMax ? Result.fail(undefined) : parse(text)
  if (Result.isSuccess(json)) {
    const shown = plain(json.success, 0)
    return shown === json.success ? body : utf8.encode(JSON.stringify(shown))
  }
  headers["content-type"] = "application/json"
  const message =
    page || /^\s*</u.test(text)
      ? `The vendor responded with HTTP ${status} and a page, which is not relayed`
      : sanitize(text, errorDetailCharactersMax)
  return utf8.encode(JSON.stringify(errorOf(status, message)))
}

const parse = (text: string) => Result.try((): unknown => JSON.parse(text))

/** A form that the clients of OpenAI, Anthropic and Google all read. */
const errorOf = (status: number, message: string) => ({
  type: "error",
  error: { type: "upstream_error", message, code: status, status: "UPSTREAM_ERROR", param: null }
})

/** Why the service itself ends a stream. */
const endings = {
  lost: {
    code: 5003,
    status: 503,
    openAi: "server_error",
    anthropic: "api_error",
    google: "UNAVAILABLE",
    message:
      "The gateway was interrupted for so long that this call was abandoned: only the part sent is charged"
  },
  balance: {
    code: 1101,
    status: 402,
    openAi: "insufficient_quota",
    anthropic: "billing_error",
    google: "FAILED_PRECONDITION",
    message:
      "The available balance does not cover more of this response: only the part sent is charged"
  },
  budget: {
    code: 1102,
    status: 402,
    openAi: "insufficient_quota",
    anthropic: "billing_error",
    google: "FAILED_PRECONDITION",
    message:
      "The spend limit of this API key does not cover more of this response: only the part sent is charged"
  }
} as const

/**
 * The event that ends a stream whose hold is lost or cannot grow, in the form of its protocol. It works whatever part
 * of an event came before it.
 */
export const endingEvent = (
  protocol: UsageProtocol | undefined,
  why: keyof typeof endings
): Buffer => {
  const [name, data] = endingOf(protocol, endings[why])
  return Buffer.from(`\n\n${name}data: ${JSON.stringify(data)}\n\n`)
}

const endingOf = (
  protocol: UsageProtocol | undefined,
  ending: (typeof endings)[keyof typeof endings]
): readonly [string, object] => {
  const { anthropic, google, message, status } = ending
  const code = String(ending.code)
  const openAi = { message, type: ending.openAi, param: null, code }
  switch (protocol) {
    case "anthropic-messages":
      return ["event: error\n", { type: "error", error: { type: anthropic, message } }]
    case "openai-responses":
    case "openai-speech":
    case "openai-transcription":
      return ["event: error\n", { type: "error", code, message, param: null, error: openAi }]
    case "gemini-generate":
    case "gemini-embeddings":
      return ["", { error: { code: status, message, status: google } }]
    case "openai-chat":
    case "openai-embeddings":
    case "rerank":
    case undefined:
      return ["", { error: openAi }]
  }
}

/** Hides what only the operator may see; returns the same value if there is nothing to hide. */
const plain = (value: unknown, depth: number): unknown => {
  if (typeof value === "string") return hideSecrets(value)
  if (typeof value !== "object" || value === null) return value
  if (depth === depthMax) return hiddenText
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => plain(item, depth + 1))
    return items.every((item, index) => item === value[index]) ? value : items
  }
  const members = Object.entries(value).map(([name, member]: [string, unknown]) => ({
    name,
    member,
    shownName: hideSecrets(name),
    shown: isSecret(name, member) ? hiddenText : plain(member, depth + 1)
  }))
  return members.every((it) => it.name === it.shownName && it.member === it.shown)
    ? value
    : Object.fromEntries(members.map(({ shown, shownName }) => [shownName, shown]))
}

/** A failure event of a stream without what only the operator may see; the same value if there is nothing to hide. */
export const errorEvent = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  const shown = Object.entries(value).map(([name, member]: [string, unknown]) => {
    if (name === "response") return [name, errorEvent(member), member] as const
    const isError = name === "error" || name === "message"
    return [name, isError ? plain(member, 0) : member, member] as const
  })
  return shown.every(([, now, before]) => now === before)
    ? value
    : Object.fromEntries(shown.map(([name, now]) => [name, now]))
}

const isSecret = (name: string, member: unknown): boolean =>
  (typeof member === "string" || typeof member === "number") &&
  member !== "" &&
  secretMember.test(name)
