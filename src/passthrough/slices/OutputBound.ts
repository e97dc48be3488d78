import type { UsageProtocol } from "../../catalog/OpenRoutes.ts"
import { at } from "../../domain/json/Json.ts"

/**
 * The most output tokens that an event of a stream can contain. A token is at least one byte of text. Text counts by
 * its own bytes, all other output (tool calls, images, audio) by the bytes of its JSON. `value` is the event's JSON, or
 * `undefined` if it is not JSON. docs/reference/wallet.md#holds-of-streams
 */
export const outputBound = (protocol: UsageProtocol, value: unknown, bytes: number): number =>
  value === undefined ? bytes : bytesOf(protocol, value)

/** An event with one piece of text and nothing else in its delta or part. */
interface PlainPiece {
  readonly mark: string
  /** Matches from the mark to the beginning of the text. */
  readonly before: RegExp
  /** The characters that must follow the text, apart from spaces between them. */
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

/** Occurs before the text of an event. */
export const plainMarkOf = (protocol: UsageProtocol): string => plainPieces[protocol]?.mark ?? delta

/**
 * The length of the text at the mark in JSON. This is at least its length in bytes, because the events are decoded as
 * Latin-1. `undefined` if the event must be parsed.
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
    // A line break, or the end of the text
    if (!(code >= space)) return -1
    index += code === backslash ? 2 : 1
  }
  return index
}

/** Occurs in an event that begins an output without a piece of text, for example with the name of a tool. */
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
    // Calls of these protocols are held for as a whole
    case "openai-embeddings":
    case "openai-speech":
    case "openai-transcription":
    case "rerank":
    case "gemini-embeddings":
      return 0
  }
}

/** Items whose output was already streamed piece by piece. */
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

/** Members that describe the form and are not output. */
const formNames = new Set(["type", "role", "index"])

/** The bytes in the members of one piece of output. Of the members in `texts`, only the text counts, not the name. */
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
