import { at } from "../domain/json/Json.ts"
import type { UsageProtocol } from "./OpenRoutes.ts"

/**
 * How often each tool run by the vendor was used, by name; for code interpreters, the number of containers. A tool with
 * its own model also has its tokens, by `toolTokensName`.
 */
export type ToolUses = Readonly<Record<string, number>>

/** The tokens of a tool's own model. The input excludes what was cached. */
export const toolTokenKinds = [
  "input",
  "cached_input",
  "image_input",
  "cached_image_input",
  "output"
] as const

export const toolTokensName = (tool: string, kind: (typeof toolTokenKinds)[number]): string =>
  `${tool}_${kind}_tokens`

/**
 * The uses that a response, or one event of a stream, reports; `undefined` when it reports none.
 * docs/reference/wallet.md#tools-that-the-vendor-runs
 */
export const toolUsesOf = (protocol: UsageProtocol, value: unknown): ToolUses | undefined => {
  switch (protocol) {
    case "openai-responses":
      return responsesUses(isObject(at(value, "response")) ? at(value, "response") : value)
    case "anthropic-messages":
      return anthropicUses(
        at(value, "usage", "server_tool_use") ?? at(value, "message", "usage", "server_tool_use")
      )
    case "gemini-generate":
      // A stream without `alt=sse` is one array of its chunks
      return Array.isArray(value)
        ? value.map((chunk) => geminiUses(at(chunk, "candidates"))).reduce(mergeToolUses, undefined)
        : geminiUses(at(value, "candidates"))
    default:
      return undefined
  }
}

/** Items of the output such as `web_search_call`, corrected by what `tool_usage` reports. */
const responsesUses = (response: unknown): ToolUses | undefined => {
  const items = itemUses(at(response, "output"))
  const images = imageTokens(at(response, "tool_usage", "image_gen"))
  const searches = counted(at(response, "tool_usage", "web_search", "num_requests"))
  const uses = {
    ...items,
    // A search may run several queries, each of which is billed
    ...(searches !== undefined && (searches > 0 || items["web_search"] !== undefined)
      ? { web_search: searches }
      : {}),
    ...(images.total > 0 || items["image_generation"] !== undefined ? images.uses : {})
  }
  return Object.keys(uses).length === 0 ? undefined : uses
}

const itemUses = (output: unknown): ToolUses => {
  if (!Array.isArray(output)) return {}
  const uses = new Map<string, Set<unknown>>()
  for (const [index, item] of output.entries()) {
    const [, name] = /^([a-z_]+)_call$/u.exec(String(at(item, "type"))) ?? []
    if (name === undefined || isFreeAction(item)) continue
    const ids = uses.get(name) ?? new Set()
    uses.set(name, ids.add(at(item, "container_id") ?? index))
  }
  return Object.fromEntries(Array.from(uses, ([name, ids]) => [name, ids.size]))
}

/** Opening a page found by a search is free. */
const isFreeAction = (item: unknown): boolean =>
  at(item, "type") === "web_search_call" && (at(item, "action", "type") ?? "search") !== "search"

/** The tokens of the image model. Its details are optional, and the total of a kind is what they do not name. */
const imageTokens = (usage: unknown): { readonly total: number; readonly uses: ToolUses } => {
  const [input, output] = [counted(at(usage, "input_tokens")), counted(at(usage, "output_tokens"))]
  if (input === undefined || output === undefined) return { total: 0, uses: {} }
  const part = (rest: number, ...path: ReadonlyArray<string>) =>
    Math.min(rest, counted(at(usage, ...path)) ?? 0)
  const image = part(input, "input_tokens_details", "image_tokens")
  const text = input - image
  const cachedImage = part(image, "cached_tokens_details", "cached_image_tokens")
  const cachedText = part(text, "cached_tokens_details", "cached_text_tokens")
  const tokens = {
    input: text - cachedText,
    cached_input: cachedText,
    image_input: image - cachedImage,
    cached_image_input: cachedImage,
    output
  }
  const uses = toolTokenKinds.map((kind) => [
    toolTokensName("image_generation", kind),
    tokens[kind]
  ])
  return { total: input + output, uses: Object.fromEntries(uses) }
}

const counted = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null

/** The uses in counts such as `web_search_requests`. */
const anthropicUses = (counts: unknown): ToolUses | undefined => {
  if (typeof counts !== "object" || counts === null) return undefined
  const uses = Object.entries(counts).flatMap(([key, count]): Array<[string, number]> => {
    const [, name] = /^([a-z_]+)_requests$/u.exec(key) ?? []
    const number = counted(count) ?? 0
    return name !== undefined && number > 0 ? [[name, number]] : []
  })
  return uses.length === 0 ? undefined : Object.fromEntries(uses)
}

/** Counts the queries of all candidates. Gemini does not say which of them went to Google Maps. */
const geminiUses = (candidates: unknown): ToolUses | undefined => {
  if (!Array.isArray(candidates)) return undefined
  let [searches, maps] = [0, 0]
  for (const candidate of candidates) {
    const grounding: unknown = at(candidate, "groundingMetadata")
    const found = at(grounding, "webSearchQueries")
    const queries = Array.isArray(found) ? found.length : 0
    if (!isGroundedBy(grounding, "maps")) searches += queries
    else if (isGroundedBy(grounding, "web")) {
      searches += queries
      maps += 1
    } else maps += Math.max(1, queries)
  }
  if (searches + maps === 0) return undefined
  return {
    ...(searches === 0 ? {} : { google_search: searches }),
    ...(maps === 0 ? {} : { google_maps: maps })
  }
}

const isGroundedBy = (grounding: unknown, source: "maps" | "web"): boolean => {
  const chunks = at(grounding, "groundingChunks")
  return Array.isArray(chunks) && chunks.some((chunk: unknown) => at(chunk, source) !== undefined)
}

/** Events of a stream are cumulative, so the highest count of each tool is kept. */
export const mergeToolUses = (
  a: ToolUses | undefined,
  b: ToolUses | undefined
): ToolUses | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return Object.fromEntries(
    Array.from(names, (name) => [name, Math.max(a[name] ?? 0, b[name] ?? 0)])
  )
}
