import type { UsageProtocol } from "../../catalog/OpenRoutes.ts"
import { at } from "../../domain/Json.ts"

/**
 * The most tokens of output that an event of a stream can hold: a token is at least one byte of text. Text counts as it
 * is, all other output (calls of tools, pictures, sound) as its JSON. `value`: the event's, `undefined` if it is no JSON.
 * docs/reference/wallet.md#holds-of-streams
 */
export const outputBound = (protocol: UsageProtocol, value: unknown, bytes: number): number =>
  value === undefined ? bytes : bytesOf(protocol, value)

/** What an event with one piece of plain text has, from its `mark` on. */
interface PlainPiece {
  readonly mark: string
  readonly pattern: RegExp
}

const delta = '"delta"'

/** Text without escapes, and nothing else in the delta or part: the most frequent events, which need no parser. */
const plainPieces: { readonly [protocol in UsageProtocol]?: PlainPiece } = {
  "openai-chat": {
    mark: delta,
    pattern: /"delta"\s*:\s*\{\s*"content"\s*:\s*"([^"\\]*)"\s*\}/uy
  },
  "openai-responses": { mark: delta, pattern: /"delta"\s*:\s*"([^"\\]*)"/uy },
  "anthropic-messages": {
    mark: delta,
    pattern: /"delta"\s*:\s*\{\s*"type"\s*:\s*"text_delta"\s*,\s*"text"\s*:\s*"([^"\\]*)"\s*\}/uy
  },
  "gemini-generate": {
    mark: '"parts"',
    pattern: /"parts"\s*:\s*\[\s*\{\s*"text"\s*:\s*"([^"\\]*)"\s*\}\s*\]/uy
  }
}

/** What stands before the text of an event. */
export const plainMarkOf = (protocol: UsageProtocol): string => plainPieces[protocol]?.mark ?? delta

/** The characters of the plain text at the mark; `undefined`: the event has to be parsed. */
export const plainLength = (
  protocol: UsageProtocol,
  text: string,
  index: number
): number | undefined => {
  const pattern = plainPieces[protocol]?.pattern
  if (pattern === undefined) return undefined
  pattern.lastIndex = index
  return pattern.exec(text)?.[1]?.length
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
