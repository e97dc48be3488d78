import { Result } from "effect"
import { Buffer } from "node:buffer"
import { randomBytes } from "node:crypto"
import { atOnce, sliceBytes } from "../shares/Slices.ts"
import type { Sliced } from "../shares/Slices.ts"
import { textBytesMax, textsBytesMax } from "./JsonLimits.ts"
import { JsonScanner } from "./JsonScanner.ts"
import { LongText } from "./LongText.ts"

/** A parsed JSON body whose long strings are still bytes. */
export interface JsonDocument {
  /** The JSON text in which a short mark replaces each long string. */
  readonly outline: string
  /** The value of the outline. */
  readonly value: unknown
  /** The number of keys in the text. */
  readonly keys: number
  readonly longTexts: ReadonlyArray<LongText>
}

/** Unguessable, so that no string of a body is mistaken for a mark. */
const nonce = `${randomBytes(12).toString("base64url")}:`

/** Whether a string of an outline stands for a long one. */
export const isMark = (text: string): boolean => text.startsWith(nonce)

/** The long string that a mark of this document stands for. */
export const longTextOf = ({ longTexts }: JsonDocument, mark: string): LongText | undefined =>
  isMark(mark) ? longTexts[Number(mark.slice(nonce.length))] : undefined

const strictUtf8 = new TextDecoder("utf-8", { fatal: true })
const invalidUtf8 = "The body is not valid UTF-8"
const invalidJson = "The body is not valid JSON"

/** Long strings checked in one turn of the event loop: each costs about a microsecond. */
const textsAtOnce = 2048

/** Parses a body that the scanner has read completely. Fails with a description of the fault. */
export function* parseDocument(
  bytes: Uint8Array,
  { keys, longTexts: ranges }: JsonScanner
): Sliced<Result.Result<JsonDocument, string>> {
  const longTexts: Array<LongText> = []
  const parts: Array<Uint8Array> = []
  let at = 0
  for (let index = 0; index < ranges.length; index += 2) {
    const [start = 0, end = 0] = [ranges[index], ranges[index + 1]]
    parts.push(bytes.subarray(at, start), Buffer.from(`${nonce}${longTexts.length}`))
    longTexts.push(new LongText(bytes.subarray(start, end)))
    at = end
    if (longTexts.length % textsAtOnce === 0) yield
  }
  parts.push(bytes.subarray(at))
  const joined = parts.length === 1 ? bytes : Buffer.concat(parts)
  if (longTexts.length > textsAtOnce) yield
  const parsed = parseOutline(joined)
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  let seen = 0
  for (const text of longTexts) {
    if (!(yield* text.isValid())) return Result.fail(invalidJson)
    seen += text.rawBytes
    if (seen < sliceBytes) continue
    seen = 0
    yield
  }
  return Result.succeed({ ...parsed.success, keys, longTexts })
}

const parseOutline = (
  bytes: Uint8Array
): Result.Result<Pick<JsonDocument, "outline" | "value">, string> => {
  let outline: string
  try {
    outline = strictUtf8.decode(bytes)
  } catch {
    return Result.fail(invalidUtf8)
  }
  try {
    return Result.succeed({ outline, value: JSON.parse(outline) })
  } catch {
    return Result.fail(outline.trim() === "" ? "The body is empty" : invalidJson)
  }
}

/** A byte order mark. docs/reference/http.md#request-bodies */
const startsWithMark = (bytes: Uint8Array): boolean =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf

/** The bytes without a byte order mark; every route skips one. */
export const withoutMark = (bytes: Uint8Array): Uint8Array =>
  startsWithMark(bytes) ? bytes.subarray(3) : bytes

/** Documents of large bodies, which several steps of a call read. */
const documents = new WeakMap<Uint8Array, JsonDocument>()

/** Caches the document of these bytes, so that they are not parsed again. */
export const keepDocument = (bytes: Uint8Array, document: JsonDocument): void => {
  documents.set(bytes, document)
}

/** The document of a body. Parses it now if it is not cached. */
export const documentOf = (bytes: Uint8Array): Result.Result<JsonDocument, string> => {
  const kept = documents.get(bytes)
  if (kept !== undefined) return Result.succeed(kept)
  // The reader has already removed a byte order mark
  if (startsWithMark(bytes)) return Result.fail(invalidJson)
  const scanner = new JsonScanner()
  const fault = scanner.add(bytes)
  if (fault !== undefined) return Result.fail(fault)
  const { keys } = scanner
  // In a small body, parsing long strings costs less than keeping them separate
  if (bytes.length <= sliceBytes) {
    return Result.map(parseOutline(bytes), (parsed) => ({ ...parsed, keys, longTexts: [] }))
  }
  const parsed = atOnce(parseDocument(bytes, scanner))
  if (Result.isSuccess(parsed)) keepDocument(bytes, parsed.success)
  return parsed
}

/**
 * The value of a document with its long strings. Decodes as many as one turn of the event loop can, texts before
 * encoded media and shorter ones first. All others stay `LongText`.
 */
export function* valueWithTexts({ longTexts, value }: JsonDocument): Sliced<unknown> {
  if (longTexts.length === 0) return value
  const texts: Array<string | LongText> = [...longTexts]
  // Numbers sort without a comparison function, which would take a whole turn
  const order = Float64Array.from(
    longTexts,
    (it, index) => (it.looksEncoded ? encodedBase : 0) + it.rawBytes * indexBase + index
  ).sort()
  let decoded = 0
  let seen = 0
  for (const place of order) {
    const index = place % indexBase
    const text = longTexts[index]
    if (text === undefined || text.rawBytes > textBytesMax) continue
    if (decoded + text.rawBytes > textsBytesMax) continue
    decoded += text.rawBytes
    texts[index] = text.text()
    seen += text.rawBytes
    if (seen < sliceBytes) continue
    seen = 0
    yield
  }
  return replaceMarks({ root: value }, texts)
}

/** A power of two above the number of long texts in a body. */
const indexBase = 2 ** 20

/** Above the bytes of the largest body, times `indexBase`. */
const encodedBase = 2 ** 50

/** Mutates the value, which was parsed for this purpose. Returns its member `root`. */
const replaceMarks = (
  holder: { readonly root: unknown },
  texts: ReadonlyArray<string | LongText>
): unknown => {
  const textOf = (text: unknown): string | LongText | undefined =>
    typeof text === "string" && isMark(text) ? texts[Number(text.slice(nonce.length))] : undefined
  const open: Array<object> = [holder]
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    if (Array.isArray(parent)) {
      const items: Array<unknown> = parent
      items.forEach((item, index) => {
        if (typeof item === "object" && item !== null) open.push(item)
        else items[index] = textOf(item) ?? item
      })
      continue
    }
    for (const [key, member] of Object.entries(parent)) {
      if (typeof member === "object" && member !== null) open.push(member)
      const text = textOf(member)
      const name = textOf(key)
      if (text === undefined && name === undefined) continue
      if (name !== undefined) Reflect.deleteProperty(parent, key)
      // An assignment to `__proto__` would set the prototype
      Object.defineProperty(parent, name === undefined ? key : String(name), {
        value: text ?? member,
        configurable: true,
        enumerable: true,
        writable: true
      })
    }
  }
  return holder.root
}
