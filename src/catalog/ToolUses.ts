import { at } from "../domain/json/Json.ts"
import type { UsageProtocol } from "./OpenRoutes.ts"

/** How often each tool run by the vendor was used, by name; for code interpreters, the number of containers. */
export type ToolUses = Readonly<Record<string, number>>

/**
 * The uses that a response, or one event of a stream, reports; `undefined` when it reports none.
 * docs/reference/wallet.md#tools-that-the-vendor-runs
 */
export const toolUsesOf = (protocol: UsageProtocol, value: unknown): ToolUses | undefined => {
  switch (protocol) {
    case "openai-responses":
      return responsesUses(at(value, "output") ?? at(value, "response", "output"))
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

/** Items of the output such as `web_search_call`. */
const responsesUses = (output: unknown): ToolUses | undefined => {
  if (!Array.isArray(output)) return undefined
  const uses = new Map<string, Set<unknown>>()
  for (const [index, item] of output.entries()) {
    const [, name] = /^([a-z_]+)_call$/u.exec(String(at(item, "type"))) ?? []
    if (name === undefined || isFreeAction(item)) continue
    const ids = uses.get(name) ?? new Set()
    uses.set(name, ids.add(at(item, "container_id") ?? index))
  }
  return uses.size === 0
    ? undefined
    : Object.fromEntries(Array.from(uses, ([name, ids]) => [name, ids.size]))
}

/** Opening a page found by a search is free. */
const isFreeAction = (item: unknown): boolean =>
  at(item, "type") === "web_search_call" && (at(item, "action", "type") ?? "search") !== "search"

/** The uses in counts such as `web_search_requests`. */
const anthropicUses = (counts: unknown): ToolUses | undefined => {
  if (typeof counts !== "object" || counts === null) return undefined
  const uses = Object.entries(counts).flatMap(([key, count]): Array<[string, number]> => {
    const [, name] = /^([a-z_]+)_requests$/u.exec(key) ?? []
    const isCount = typeof count === "number" && Number.isSafeInteger(count) && count > 0
    return name !== undefined && isCount ? [[name, count]] : []
  })
  return uses.length === 0 ? undefined : Object.fromEntries(uses)
}

/** Counts the search queries of all candidates. */
const geminiUses = (candidates: unknown): ToolUses | undefined => {
  if (!Array.isArray(candidates)) return undefined
  const queries = candidates.reduce<number>((sum, candidate: unknown) => {
    const found = at(candidate, "groundingMetadata", "webSearchQueries")
    return sum + (Array.isArray(found) ? found.length : 0)
  }, 0)
  return queries === 0 ? undefined : { google_search: queries }
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
