import type { UsageProtocol } from "../../catalog/OpenRoutes.ts"
import { at } from "../../domain/json/Json.ts"

/**
 * The most tokens of output that an event of a stream can hold: a token is at least one byte of text. Text counts as it
 * is, all other output (calls of tools, pictures, sound) as its JSON. `value`: the event's, `undefined` if it is not JSON.
 * docs/reference/wallet.md#holds-of-streams
 */
export const outputBound = (protocol: UsageProtocol, value: unknown, bytes: number): number =>
  value === undefined ? bytes : bytesOf(protocol, value)

/** An event with one piece of text and nothing else in its delta or part. */
interface PlainPiece {
  readonly mark: string
  /** From the mark to the text. */
  readonly before: RegExp
  /** After the text, with spaces between. */
  readonly after: string
}

const delta = '"delta"'

/** The most frequent events, which need no parser. */
const plainPieces: { readonly [protocol in UsageProtocol]?: PlainPiece } = {
  "openai-chat": { mark: delta, before: /"delta"\s*:\s*\{\s*"content"\s*:\s*"/uy, after: "}" },
  "openai-responses": { mark: delta, before: /"delta"\s*:\s*"/uy, after: "" },
  "anthropic-messages": {
    mark: delta,
    before:
      /"delta"\s*:\s*\{\s*"type"\s*:\s*"(?:text_delta"\s*,\s*"text|input_json_delta"\s*,\s*"partial_json)"\s*:\s*"/uy,
    after: "}"
  },
  "gemini-generate": {
    mark: '"parts"',
    before: /"parts"\s*:\s*\[\s*\{\s*"text"\s*:\s*"/uy,
    after: "}]"
  }
}

/** What stands before the text of an event. */
export const plainMarkOf = (protocol: UsageProtocol): string => plainPieces[protocol]?.mark ?? delta

/**
 * The characters of the text at the mark as JSON, which are at least the bytes of the text: the events are Latin-1.
 * `undefined`: the event has to be parsed.
 */
export const plainLength = (
  protocol: UsageProtocol,
  events: string,
  index: number
): number | undefined => {
  const piece = plainPieces[protocol]
  if (piece === undefined) return undefined
  piece.before.lastIndex = index
  if (!piece.before.test(events)) return undefined
  const start = piece.before.lastIndex
  const end = endOfText(events, start)
  if (end < 0) return undefined
  let next = end + 1
  for (const character of piece.after) {
    while (events.charCodeAt(next) === space) next += 1
    if (events[next] !== character) return undefined
    next += 1
  }
  return end - start
}

const quote = 0x22
const backslash = 0x5c
const space = 0x20

/** The index of the quotation mark that ends a JSON string; negative if there is none. */
const endOfText = (events: string, start: number): number => {
  let index = start
  for (let code = events.charCodeAt(index); code !== quote; code = events.charCodeAt(index)) {
    // A line break or the end
    if (!(code >= space)) return -1
    index += code === backslash ? 2 : 1
  }
  return index
}

/** What an event has that begins an output without a piece of it: the name of a tool for example. */
export const itemMarks: { readonly [protocol in UsageProtocol]?: string } = {
  "openai-responses": "response.output_item.",
  "anthropic-messages": "content_block_start"
}

const bytesOf = (protocol: UsageProtocol, event: unknown): number => {
  switch (protocol) {
    case "openai-chat":
      return sum(at(event, "choices"), (choice) => ofParts(at(choice, "delta"), "content"))
    case "openai-responses":
      return ofResponses(event)
    case "anthropic-messages":
      return Math.max(
        ofParts(at(event, "delta"), "text", "partial_json", "thinking"),
        ofParts(at(event, "content_block"))
      )
    case "gemini-generate":
      return sum(at(event, "candidates"), (candidate) =>
        sum(at(candidate, "content", "parts"), (part) => ofParts(part, "text"))
      )
    // Their calls are held for as a whole
    case "openai-embeddings":
    case "openai-speech":
    case "openai-transcription":
    case "rerank":
    case "gemini-embeddings":
      return 0
  }
}

/** Items whose output came before, piece by piece. */
const itemsWithDeltas = new Set<unknown>([
  "message",
  "function_call",
  "custom_tool_call",
  "mcp_call",
  "reasoning"
])

const ofResponses = (event: unknown): number => {
  const type = at(event, "type")
  if (typeof type !== "string") return 0
  if (type.endsWith(".delta")) return sizeOf(at(event, "delta"))
  const item = at(event, "item")
  if (type === "response.output_item.added") return sizeOf(item)
  const isNew = type === "response.output_item.done" && !itemsWithDeltas.has(at(item, "type"))
  return isNew ? sizeOf(item) : 0
}

/** Names of the form, which are no output. */
const formNames = new Set(["type", "role", "index"])

/** The members of one piece of output; of those in `texts` the text alone counts. */
const ofParts = (piece: unknown, ...texts: ReadonlyArray<string>): number => {
  if (typeof piece !== "object" || piece === null) return 0
  let bytes = 0
  for (const [name, member] of Object.entries(piece)) {
    if (formNames.has(name) || member === null) continue
    bytes += texts.includes(name) ? sizeOf(member) : name.length + sizeOf(member)
  }
  return bytes
}

const sizeOf = (value: unknown): number => {
  if (typeof value === "string") return Buffer.byteLength(value)
  return value === undefined || value === null ? 0 : Buffer.byteLength(JSON.stringify(value))
}

const sum = (list: unknown, sizeOfOne: (one: unknown) => number): number =>
  Array.isArray(list) ? list.reduce<number>((total, one: unknown) => total + sizeOfOne(one), 0) : 0
