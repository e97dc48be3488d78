import { Result } from "effect"
import { builtInRoutes, takesResponse, unversionedName } from "../catalog/OpenRoutes.ts"
import type { OpenRoute } from "../catalog/OpenRoutes.ts"
import { at } from "../domain/json/Json.ts"
import { documentOf } from "../domain/json/JsonDocument.ts"
import { invalid } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import type { PreviousResponse } from "./PassthroughCall.ts"
import { hasContentMember } from "./RequestContent.ts"
import { readBody } from "./streams/MeteredBody.ts"
import type { ReadBody } from "./streams/MeteredBody.ts"

/**
 * How a call uses data stored at a vendor account. It uses none, stores data there, or refers (at this pointer) to data
 * of an earlier call. `Elsewhere`: it refers to data created directly at the vendor, in an account unknown to the
 * gateway. ADR 0134.
 */
export type KeptState =
  | { readonly _tag: "Nothing" | "Makes" }
  | { readonly _tag: "Names" | "Elsewhere"; readonly pointer: string }

const nothing: KeptState = { _tag: "Nothing" }
const makes: KeptState = { _tag: "Makes" }
const names = (pointer: string): KeptState => ({ _tag: "Names", pointer })

/** The built-in free routes store nothing at any vendor. */
const statelessRoutes: ReadonlySet<string> = new Set(builtInRoutes.map(unversionedName))

/** Members that refer to files and caches. */
const namingMembers: ReadonlySet<string> = new Set(["file_id", "cachedContent", "cached_content"])

/** Gemini refers to files by URI. */
const fileUri = /^file_?[uU]ri$/u
const geminiFiles = "generativelanguage.googleapis.com/"

/** A body without these bytes refers to no stored data and is not parsed. */
const namingBytes = [...Array.from(namingMembers, (name) => `"${name}"`), geminiFiles]

/** Call only for a provider with several accounts, because it parses the body again. */
export const keptStateOf = (route: OpenRoute, body: Uint8Array): KeptState => {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (takesResponse(route)) {
    const state = stateOfResponse(Result.getOrUndefined(documentOf(body))?.value)
    if (state._tag !== "Nothing" && state._tag !== "Makes") return state
    if (namesKept(bytes)) return names("#")
    // A count stores nothing
    return route.meter.per === "tokens" ? state : nothing
  }
  if (namesKept(bytes)) return names("#")
  return route.meter.per === "tokens" || statelessRoutes.has(unversionedName(route))
    ? nothing
    : makes
}

const namesKept = (bytes: Buffer): boolean =>
  namingBytes.some((mark) => bytes.includes(mark)) &&
  hasContentMember(
    Result.getOrUndefined(documentOf(bytes))?.value,
    (name, value) =>
      typeof value === "string" &&
      (namingMembers.has(name) || (fileUri.test(name) && value.includes(geminiFiles)))
  )

const stateOfResponse = (body: unknown): KeptState => {
  if (at(body, "prompt", "id") !== undefined) return { _tag: "Elsewhere", pointer: "#/prompt" }
  const tools = at(body, "tools")
  const store = Array.isArray(tools) ? tools.findIndex(readsStore) : -1
  if (store >= 0) return { _tag: "Elsewhere", pointer: `#/tools/${store}` }
  const input = at(body, "input")
  const index = Array.isArray(input) ? input.findIndex(isKept) : -1
  if (index >= 0) return names(`#/input/${index}`)
  const include = at(body, "include")
  const isEncrypted = Array.isArray(include) && include.includes("reasoning.encrypted_content")
  return at(body, "store") === false && !isEncrypted ? nothing : makes
}

/** Vector stores are created at the vendor. */
const readsStore = (tool: unknown): boolean => at(tool, "type") === "file_search"

/** Whether the item is read from data stored in the account, or needs a key of its organization. */
const isKept = (item: unknown): boolean => {
  const type = at(item, "type")
  return type === "reasoning" || type === "compaction" || isReference(item)
}

/** A reference may omit its type. */
const isReference = (item: unknown): boolean => {
  const type = at(item, "type") ?? undefined
  if (type !== undefined) return type === "item_reference"
  return at(item, "role") === undefined && at(item, "id") !== undefined
}

/** Whether an input item refers to a stored item, whose length the body does not show. */
export const namesStoredItem = (body: unknown): boolean => {
  const input = at(body, "input")
  return Array.isArray(input) && input.some(isReference)
}

/** Members that refer to data stored in the upstream account, which all users share. ADR 0073. */
const keptUpstream = ["previous_response_id", "conversation"] as const

/** The problem for such members, except the response that the call continues. */
export const storedRefusal = (
  body: ReadBody["body"],
  previous: PreviousResponse | undefined
): Problem | undefined => {
  const kept = keptUpstream.filter(
    (member) =>
      (body[member] ?? null) !== null &&
      !(member === "previous_response_id" && previous !== undefined)
  )
  if (kept.length === 0) return undefined
  const detail =
    "Only background responses are stored between calls: send the earlier messages as well"
  return invalid(kept.map((member) => ({ pointer: `#/${member}`, detail })))
}

/** The problem for a count that would tell how much other users have stored. */
export const countRefusal = (
  bytes: Uint8Array,
  previous: PreviousResponse | undefined
): Problem | undefined => {
  const read = readBody(bytes)
  return Result.isFailure(read) ? read.failure : storedRefusal(read.success.body, previous)
}
