import { Array as Arr, Effect, Option, Predicate } from "effect"
import { LongText } from "../../domain/json/LongText.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import type { Body, BodySource } from "../bodies/Bodies.ts"
import { sizeFaults, decodeBody, InvalidBody } from "../bodies/Decode.ts"
import { isUrlCandidate } from "../bodies/Fields.ts"
import { capFaults, pointerOf, describeValue } from "../FieldFaults.ts"
import { inspectAudio } from "./Audio.ts"
import type { AudioInfo } from "./Audio.ts"
import { charactersOf, decodeBase64, decodedBytes, withoutStart } from "./Base64.ts"
import type { Characters } from "./Base64.ts"
import { mimesOf } from "./Formats.ts"
import { inspectImage } from "./Image.ts"
import type { ImageInfo } from "./Image.ts"
import { mediaFieldsOf } from "./MediaFields.ts"
import { bytesFault, MediaFault } from "./MediaRules.ts"
import type { MediaRules } from "./MediaRules.ts"
import { inSlices } from "./Slices.ts"
import { inspectVideo } from "./Video.ts"
import type { VideoInfo } from "./Video.ts"

export type MediaInfo = ImageInfo | AudioInfo | VideoInfo

/** A checked inline medium of a body. */
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

/** Replaces the inline medium at that index. Clients cannot send it, because `:` is not a Base64 character. */
export const placeholderOf = (index: number): string => `artifact:${index}`

const reference = /^artifact:(art_.+)$/u

/** Replaces a medium by its artifact. */
export const referenceTo = (artifactId: string): string => `artifact:${artifactId}`

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

const dataUri = /^data:([^,]{0,200}?)(;base64)?,/iu

/** Longer than the beginning of any data URI or URL that is recognized. */
const headCharacters = 256

const fault = (detail: string) => new MediaFault({ detail })

const declaredFault = (declared: string, info: MediaInfo): MediaFault | undefined => {
  const names: ReadonlyArray<string> = mimesOf[info.format]
  return names.includes((declared.split(";")[0] ?? "").toLowerCase())
    ? undefined
    : fault(`The data URI declares ${describeValue(declared)}, its bytes are ${info.format}`)
}

/** The bytes of a file, or a text with a `data:` URI or bare Base64, which may be long. */
type Inline = string | LongText | Uint8Array

const isInlineValue = (value: unknown): value is Inline =>
  typeof value === "string" || value instanceof LongText || value instanceof Uint8Array

/** Checks a file, or decodes and checks a text. */
const readInline = Effect.fnUntraced(function* (given: Inline, rules: MediaRules) {
  if (given instanceof Uint8Array) {
    const tooLarge = bytesFault(given.length, rules.bytesMax)
    if (tooLarge !== undefined) return yield* fault(tooLarge)
    return yield* inspectMedia(given, rules)
  }
  return yield* readEncoded(
    typeof given === "string" ? given : charactersOf(yield* inSlices(() => given.bytes())),
    rules
  )
})

const readEncoded = Effect.fnUntraced(function* (text: Characters, rules: MediaRules) {
  const match = dataUri.exec(text.slice(0, headCharacters))
  if (match !== null && match[2] === undefined) {
    return yield* fault("Expected a data URI of the form data:<type>;base64,<data>")
  }
  const encoded = match === null ? text : withoutStart(text, match[0].length)
  const tooLarge = bytesFault(decodedBytes(encoded), rules.bytesMax)
  if (tooLarge !== undefined) return yield* fault(tooLarge)
  const decoded = yield* inSlices(() => decodeBase64(encoded))
  if (decoded === undefined) {
    return yield* fault(
      match === null
        ? `Expected a public URL, a data URI or valid Base64, got ${describeValue(text.slice(0, headCharacters))}`
        : "The data URI does not contain valid Base64"
    )
  }
  const info = yield* inspectMedia(decoded, rules)
  const mismatch = match === null ? undefined : declaredFault(match[1] ?? "", info)
  return mismatch === undefined ? info : yield* mismatch
})

/** The value of a media field of a body, with the rules of the field. */
interface MediaValue {
  readonly pointer: string
  readonly value: Inline
  readonly rules: MediaRules
}

/** A text in a media field of a stored body. */
export interface MediaText {
  readonly pointer: string
  readonly text: string
  readonly rules: MediaRules
}

const valuesOf = (field: string, value: unknown, rules: MediaRules): ReadonlyArray<MediaValue> => {
  if (isInlineValue(value)) return [{ pointer: pointerOf([field]), value, rules }]
  if (!Array.isArray(value)) return []
  return value.flatMap((item: unknown, index) =>
    isInlineValue(item) ? [{ pointer: pointerOf([field, index]), value: item, rules }] : []
  )
}

/** The entries of a body, which may not even be an object. */
const entriesOf = (input: unknown): ReadonlyArray<[string, unknown]> =>
  Predicate.isObject(input) ? Object.entries(input) : []

/** All values in the media fields of a body, in order. */
const mediaValuesIn = (source: BodySource, input: unknown): ReadonlyArray<MediaValue> => {
  const fields = new Map(Object.entries(mediaFieldsOf(source)))
  return entriesOf(input).flatMap(([field, value]) => {
    const rules = fields.get(field)
    return rules === undefined ? [] : valuesOf(field, value, rules)
  })
}

/** All texts in the media fields of a stored body, in order. */
export const mediaIn = (source: BodySource, input: unknown): ReadonlyArray<MediaText> =>
  mediaValuesIn(source, input).flatMap(({ value, ...rest }) =>
    typeof value === "string" ? [{ ...rest, text: value }] : []
  )

/** The body with its media texts replaced. */
const replace = (
  source: BodySource,
  input: unknown,
  by: (pointer: string, value: Inline) => unknown
): unknown => {
  const fields = mediaFieldsOf(source)
  if (entriesOf(input).length === 0) return input
  return Object.fromEntries(
    entriesOf(input).map(([field, value]) => {
      if (!Object.hasOwn(fields, field)) return [field, value]
      if (isInlineValue(value)) return [field, by(pointerOf([field]), value)]
      if (!Array.isArray(value)) return [field, value]
      const items: ReadonlyArray<unknown> = value
      return [
        field,
        items.map((item, index) =>
          isInlineValue(item) ? by(pointerOf([field, index]), item) : item
        )
      ]
    })
  )
}

const isInline = ({ rules, value }: MediaValue): boolean => {
  if (rules.kind === "video") return false
  return typeof value !== "string" || (value.length > 0 && !isUrlCandidate(value))
}

/** Extracts and checks the inline media of a body. */
const extract = Effect.fnUntraced(function* (source: BodySource, input: unknown) {
  const found = mediaValuesIn(source, input)
  const [media, faults] = yield* Effect.partition(found.filter(isInline), (it) =>
    Effect.yieldNow.pipe(
      Effect.andThen(readInline(it.value, it.rules)),
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
  const refused = new Set(faults.map(({ pointer }) => pointer))
  const body = replace(source, input, (pointer, value) => {
    const index = indexOf.get(pointer)
    if (index !== undefined) return placeholderOf(index)
    // Its fault is already known, so it must not get a second one for not being a string
    return typeof value !== "string" && refused.has(pointer) ? placeholderOf(0) : value
  })
  const urls = mediaIn(source, input)
    .filter(({ text }) => isUrlCandidate(text))
    .map(({ pointer, rules, text }): UrlMedium => ({ pointer, url: text, rules }))
  return { body, media, urls, faults }
})

/**
 * Checks a body when a task is created. Decodes it, checks and extracts its inline media (a task row never contains
 * their bytes), and lists the URLs to fetch. Fails with the faults of fields and media together.
 */
export const acceptBody = Effect.fn("Media.acceptBody")(function* (
  source: BodySource,
  input: unknown
): Effect.fn.Return<AcceptedBody, InvalidBody> {
  const tooLarge = sizeFaults(input)
  if (Arr.isReadonlyArrayNonEmpty(tooLarge)) return yield* new InvalidBody({ errors: tooLarge })
  const { body, faults, media, urls } = yield* extract(source, input)
  const decoded = yield* Effect.result(decodeBody(source, body))
  const all = decoded._tag === "Failure" ? [...decoded.failure.errors, ...faults] : faults
  if (Arr.isReadonlyArrayNonEmpty(all)) return yield* new InvalidBody({ errors: capFaults(all) })
  return { body: yield* Effect.fromResult(decoded), media, urls }
})

/** A decoded body with its media texts replaced: placeholders by artifacts, or artifacts by data URIs. */
export const mapMedia = (
  source: BodySource,
  body: Body,
  by: (pointer: string, text: string) => string
): Effect.Effect<Body, InvalidBody> =>
  decodeBody(
    source,
    replace(source, body, (pointer, value) =>
      typeof value === "string" ? by(pointer, value) : value
    )
  )
