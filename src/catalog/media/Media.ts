import { Array as Arr, Effect, Option } from "effect"
import { Buffer } from "node:buffer"
import type { FieldFault } from "../../domain/Problem.ts"
import type { Body, Label } from "../bodies/Bodies.ts"
import { sizeFaults, decodeBody, InvalidBody } from "../bodies/Decode.ts"
import { isUrlCandidate } from "../bodies/Fields.ts"
import { capFaults, pointerOf, describeValue } from "../FieldFaults.ts"
import { inspectAudio } from "./Audio.ts"
import type { AudioInfo } from "./Audio.ts"
import { mimesOf } from "./Formats.ts"
import { inspectImage } from "./Image.ts"
import type { ImageInfo } from "./Image.ts"
import { mediaFields } from "./MediaFields.ts"
import { bytesFault, MediaFault } from "./MediaRules.ts"
import type { MediaRules } from "./MediaRules.ts"
import { inSlices, sliceBytes } from "./Slices.ts"
import type { Sliced } from "./Slices.ts"
import { inspectVideo } from "./Video.ts"
import type { VideoInfo } from "./Video.ts"

export type MediaInfo = ImageInfo | AudioInfo | VideoInfo

/** An inline medium of a body, checked. */
export interface InlineMedium {
  readonly pointer: string
  readonly bytes: Uint8Array
  /** By magic bytes, not as declared. */
  readonly mime: string
  readonly info: MediaInfo
}

/** A medium that is fetched and checked when the task runs. docs/reference/models.md#media-by-url */
export interface UrlMedium {
  readonly pointer: string
  readonly url: string
  readonly rules: MediaRules
}

/** A body whose inline media are replaced by `artifact:<index into media>`. */
export interface AcceptedBody {
  readonly body: Body
  readonly media: ReadonlyArray<InlineMedium>
  readonly urls: ReadonlyArray<UrlMedium>
}

/** Replaces the inline medium of that index. No client can send it, because `:` is not Base64. */
export const placeholderOf = (index: number): string => `artifact:${index}`

const reference = /^artifact:(art_.+)$/u

/** The artifact id that replaced an inline medium in a stored body. */
export const referenceIn = (text: string): Option.Option<string> =>
  Option.fromUndefinedOr(reference.exec(text)?.[1])

/** Checks bytes against the rules of their field. docs/reference/models.md#inspection */
export const inspectMedia = (
  bytes: Uint8Array,
  rules: MediaRules
): Effect.Effect<MediaInfo, MediaFault> => {
  switch (rules.kind) {
    case "image":
      return inspectImage(bytes, rules)
    case "audio":
      return inspectAudio(bytes, rules)
    case "video":
      return inspectVideo(bytes, rules)
  }
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
const strict = /^[A-Za-z0-9+/]*={0,2}$/u
const unpadded = /^[A-Za-z0-9+/]*$/u

const paddingOf = (text: string): number => (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0)

/** The decoded size, without decoding. */
export const decodedBytes = (text: string): number =>
  Math.floor((text.length - paddingOf(text)) * 0.75)

/** The bits cut off by padding must be zero, so that one text only stands for the bytes. */
const isCanonical = (text: string): boolean => {
  const padding = paddingOf(text)
  if (padding === 0) return true
  const last = alphabet.indexOf(text.charAt(text.length - padding - 1))
  return last % (padding === 2 ? 16 : 4) === 0
}

/**
 * Strict Base64 of RFC 4648, section 4: padded, no blanks, no stray bits. `undefined`: it is not.
 * docs/reference/models.md#media-in-bodies
 */
export const decodeBase64 = function* (text: string): Sliced<Uint8Array | undefined> {
  if (text.length % 4 !== 0 || !isCanonical(text)) return undefined
  const bytes = new Uint8Array(decodedBytes(text))
  const target = Buffer.from(bytes.buffer)
  for (let at = 0; at < text.length; at += sliceBytes) {
    if (at > 0) yield
    const slice = text.slice(at, at + sliceBytes)
    const isLast = at + sliceBytes >= text.length
    if (!(isLast ? strict : unpadded).test(slice)) return undefined
    target.write(slice, (at / 4) * 3, "base64")
  }
  return bytes
}

const dataUri = /^data:([^,]{0,200}?)(;base64)?,/iu

const fault = (detail: string) => new MediaFault({ detail })

const declaredFault = (declared: string, info: MediaInfo): MediaFault | undefined => {
  const names: ReadonlyArray<string> = mimesOf[info.format]
  return names.includes((declared.split(";")[0] ?? "").toLowerCase())
    ? undefined
    : fault(`The data URI declares ${describeValue(declared)}, its bytes are ${info.format}`)
}

/** Decodes and checks a `data:` URI or bare Base64. */
const readInline = Effect.fnUntraced(function* (text: string, rules: MediaRules) {
  const match = dataUri.exec(text)
  if (match !== null && match[2] === undefined) {
    return yield* fault("Expected a data URI of the form data:<type>;base64,<data>")
  }
  const encoded = match === null ? text : text.slice(match[0].length)
  const tooLarge = bytesFault(decodedBytes(encoded), rules.bytesMax)
  if (tooLarge !== undefined) return yield* fault(tooLarge)
  const decoded = yield* inSlices(() => decodeBase64(encoded))
  if (decoded === undefined) {
    return yield* fault(
      match === null
        ? `Expected a public URL, a data URI or valid Base64, got ${describeValue(text)}`
        : "The data URI does not hold valid Base64"
    )
  }
  const info = yield* inspectMedia(decoded, rules)
  const mismatch = match === null ? undefined : declaredFault(match[1] ?? "", info)
  return mismatch === undefined ? info : yield* mismatch
})

/** A text in a media field of a body, with the rules of the field. */
export interface MediaText {
  readonly pointer: string
  readonly text: string
  readonly rules: MediaRules
}

const textsOf = (field: string, value: unknown, rules: MediaRules): ReadonlyArray<MediaText> => {
  if (typeof value === "string") return [{ pointer: pointerOf([field]), text: value, rules }]
  if (!Array.isArray(value)) return []
  return value.flatMap((item: unknown, index) =>
    typeof item === "string" ? [{ pointer: pointerOf([field, index]), text: item, rules }] : []
  )
}

/** The entries of a body that may not even be an object. */
const entriesOf = (input: unknown): ReadonlyArray<[string, unknown]> =>
  typeof input === "object" && input !== null && !Array.isArray(input) ? Object.entries(input) : []

/** All texts in the media fields of a body, in its order. */
export const mediaIn = (label: Label, input: unknown): ReadonlyArray<MediaText> => {
  const fields = new Map(Object.entries(mediaFields[label]))
  return entriesOf(input).flatMap(([field, value]) => {
    const rules = fields.get(field)
    return rules === undefined ? [] : textsOf(field, value, rules)
  })
}

/** The body with its media texts replaced. */
const replace = (
  label: Label,
  input: unknown,
  by: (pointer: string, text: string) => string
): unknown => {
  const fields = mediaFields[label]
  if (entriesOf(input).length === 0) return input
  return Object.fromEntries(
    entriesOf(input).map(([field, value]) => {
      if (!Object.hasOwn(fields, field)) return [field, value]
      if (typeof value === "string") return [field, by(pointerOf([field]), value)]
      if (!Array.isArray(value)) return [field, value]
      const items: ReadonlyArray<unknown> = value
      return [
        field,
        items.map((item, index) =>
          typeof item === "string" ? by(pointerOf([field, index]), item) : item
        )
      ]
    })
  )
}

const isInline = ({ rules, text }: MediaText): boolean =>
  rules.kind !== "video" && text.length > 0 && !isUrlCandidate(text)

/** Extracts and checks the inline media of a body. */
const extract = Effect.fnUntraced(function* (label: Label, input: unknown) {
  const found = mediaIn(label, input)
  const [media, faults] = yield* Effect.partition(found.filter(isInline), (it) =>
    Effect.yieldNow.pipe(
      Effect.andThen(readInline(it.text, it.rules)),
      Effect.map((info): InlineMedium => ({
        pointer: it.pointer,
        bytes: info.content,
        mime: info.mime,
        info
      })),
      Effect.mapError(({ detail }): FieldFault => ({ pointer: it.pointer, detail }))
    )
  )
  const indexOf = new Map(media.map(({ pointer }, index) => [pointer, index]))
  const body = replace(label, input, (pointer, text) => {
    const index = indexOf.get(pointer)
    return index === undefined ? text : placeholderOf(index)
  })
  const urls = found
    .filter(({ text }) => isUrlCandidate(text))
    .map(({ pointer, rules, text }): UrlMedium => ({ pointer, url: text, rules }))
  return { body, media, urls, faults }
})

/**
 * Checks a body at create: decodes it, checks and extracts its inline media (bytes are never stored in a
 * task row), and lists the URLs to fetch. Fails with the faults of fields and media together.
 */
export const acceptBody = Effect.fn("Media.acceptBody")(function* (
  label: Label,
  input: unknown
): Effect.fn.Return<AcceptedBody, InvalidBody> {
  const tooLarge = sizeFaults(input)
  if (Arr.isReadonlyArrayNonEmpty(tooLarge)) return yield* new InvalidBody({ errors: tooLarge })
  const { body, faults, media, urls } = yield* extract(label, input)
  const decoded = yield* Effect.result(decodeBody(label, body))
  const all = decoded._tag === "Failure" ? [...decoded.failure.errors, ...faults] : faults
  if (Arr.isReadonlyArrayNonEmpty(all)) return yield* new InvalidBody({ errors: capFaults(all) })
  return { body: yield* Effect.fromResult(decoded), media, urls }
})

/** A decoded body with its media texts replaced: placeholders by artifacts, or artifacts by data URIs. */
export const mapMedia = (
  label: Label,
  body: Body,
  by: (pointer: string, text: string) => string
): Effect.Effect<Body, InvalidBody> => decodeBody(label, replace(label, body, by))
