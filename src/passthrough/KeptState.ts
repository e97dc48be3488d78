import { Result } from "effect"
import { builtInRoutes, unversionedName } from "../catalog/OpenRoutes.ts"
import type { OpenRoute } from "../catalog/OpenRoutes.ts"
import { at } from "../domain/Json.ts"
import { documentOf } from "../domain/JsonDocument.ts"
import { hasContentMember } from "./RequestContent.ts"

/**
 * What a call has to do with what an account of the vendor keeps: nothing, it leaves something behind,
 * or it names what an earlier call has left (at this pointer). `Elsewhere`: it names what was made at
 * the vendor itself, at an account that nobody here knows. ADR 0134.
 */
export type KeptState =
  | { readonly _tag: "Nothing" | "Makes" }
  | { readonly _tag: "Names" | "Elsewhere"; readonly pointer: string }

const nothing: KeptState = { _tag: "Nothing" }
const makes: KeptState = { _tag: "Makes" }
const names = (pointer: string): KeptState => ({ _tag: "Names", pointer })

/** Free routes that the gateway opens by itself keep nothing, at any vendor. */
const statelessRoutes: ReadonlySet<string> = new Set(builtInRoutes.map(unversionedName))

/** Members that name files and caches. */
const namingMembers: ReadonlySet<string> = new Set(["file_id", "cachedContent", "cached_content"])

/** Gemini's files are named by their address. */
const fileUri = /^file_?[uU]ri$/u
const geminiFiles = "generativelanguage.googleapis.com/"

/** A body without these bytes names nothing, and is not parsed. */
const namingBytes = [...Array.from(namingMembers, (name) => `"${name}"`), geminiFiles]

/** Only for a provider with several accounts: it reads the body again. */
export const keptStateOf = (route: OpenRoute, body: Uint8Array): KeptState => {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (route.meter.per === "tokens" && route.meter.protocol === "openai-responses") {
    const state = stateOfResponse(Result.getOrUndefined(documentOf(body))?.value)
    if (state._tag !== "Nothing" && state._tag !== "Makes") return state
    return namesKept(bytes) ? names("#") : state
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
  const input = at(body, "input")
  const index = Array.isArray(input) ? input.findIndex(isKept) : -1
  if (index >= 0) return names(`#/input/${index}`)
  const include = at(body, "include")
  const isEncrypted = Array.isArray(include) && include.includes("reasoning.encrypted_content")
  return at(body, "store") === false && !isEncrypted ? nothing : makes
}

/** Read from what the account has stored, or with a key of its organization. */
const isKept = (item: unknown): boolean => {
  const type = at(item, "type")
  return type === "reasoning" || type === "compaction" || isReference(item)
}

/** The type of a reference may be left out. */
const isReference = (item: unknown): boolean => {
  const type = at(item, "type") ?? undefined
  if (type !== undefined) return type === "item_reference"
  return at(item, "role") === undefined && at(item, "id") !== undefined
}

/** An item of the input stands for a stored one, whose length the body does not show. */
export const namesStoredItem = (body: unknown): boolean => {
  const input = at(body, "input")
  return Array.isArray(input) && input.some(isReference)
}
