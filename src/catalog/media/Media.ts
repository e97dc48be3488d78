import { Array as Arr, Effect, Option } from "effect"
import type { FieldFault } from "../../domain/Problem.ts"
import type { Body, Label } from "../bodies/Bodies.ts"
import { crowdFaults, decodeBody, InvalidBody } from "../bodies/Decode.ts"
import { isUrlCandidate } from "../bodies/Fields.ts"
import { capFaults, pointerOf, quote } from "../Pointers.ts"
import { inspectAudio } from "./Audio.ts"
import type { AudioInfo } from "./Audio.ts"
import { decodeBase64, decodedBytes } from "./Base64.ts"
import { MediaFault } from "./Bytes.ts"
import { inspectImage } from "./Image.ts"
import type { ImageInfo } from "./Image.ts"
import { bytesFault } from "./InspectionRules.ts"
import type { MediaRules } from "./InspectionRules.ts"
import { mediaRules } from "./MediaRules.ts"
import { mimesOf } from "./Sniff.ts"
import { inspectVideo } from "./Video.ts"
import type { VideoInfo } from "./Video.ts"

export type MediaInfo = ImageInfo | AudioInfo | VideoInfo

/** A medium that came inside the body, checked. */
export interface InlineMedium {
  readonly pointer: string
  readonly bytes: Uint8Array
  /** By magic bytes, not as declared. */
  readonly mime: string
  readonly info: MediaInfo
}

/** A medium that is fetched at execution, and what it is checked against then (contract 5). */
export interface UrlMedium {
  readonly pointer: string
  readonly url: string
  readonly rules: MediaRules
}

/** A body whose inline media are replaced by `artifact:<index>`, an index into `media`. */
export interface AcceptedBody {
  readonly body: Body
  readonly media: ReadonlyArray<InlineMedium>
  readonly urls: ReadonlyArray<UrlMedium>
}

/** Stands in a body for the inline medium of that index; no client can send it, `:` is no Base64. */
export const placeholderOf = (index: number): string => `artifact:${index}`

const reference = /^artifact:(art_.+)$/u

/** The artifact that stands in a stored body where the inline medium was. */
export const referenceIn = (text: string): Option.Option<string> =>
  Option.fromUndefinedOr(reference.exec(text)?.[1])

/** Checks bytes against the rules of their field, wherever they came from. Contract 5. */
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

const fault = (detail: string) => new MediaFault({ detail })

const declaredFault = (declared: string, info: MediaInfo): MediaFault | undefined => {
  const names: ReadonlyArray<string> = mimesOf[info.format]
  return names.includes((declared.split(";")[0] ?? "").toLowerCase())
    ? undefined
    : fault(`The data URI declares ${quote(declared)}, its bytes are ${info.format}`)
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
  const decoded = decodeBase64(encoded)
  if (Option.isNone(decoded)) {
    return yield* fault(
      match === null
        ? `Expected a public URL, a data URI or valid Base64, got ${quote(text)}`
        : "The data URI does not hold valid Base64"
    )
  }
  const info = yield* inspectMedia(decoded.value, rules)
  const lie = match === null ? undefined : declaredFault(match[1] ?? "", info)
  return lie === undefined ? { bytes: decoded.value, info } : yield* lie
})

/** A text in a media field of a body, and what that field takes. */
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
  const fields = new Map(Object.entries(mediaRules[label]))
  return entriesOf(input).flatMap(([field, value]) => {
    const rules = fields.get(field)
    return rules === undefined ? [] : textsOf(field, value, rules)
  })
}

/** The body with the texts at some pointers replaced; all else is as it was. */
const replace = (
  label: Label,
  input: unknown,
  by: (pointer: string, text: string) => string
): unknown => {
  const fields = mediaRules[label]
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

/** Takes the media out of a body and tells what is wrong with any of them. */
const extract = Effect.fnUntraced(function* (label: Label, input: unknown) {
  const found = mediaIn(label, input)
  const [media, faults] = yield* Effect.partition(found.filter(isInline), (it) =>
    Effect.yieldNow.pipe(
      Effect.andThen(readInline(it.text, it.rules)),
      Effect.map(({ bytes, info }): InlineMedium => ({
        pointer: it.pointer,
        bytes,
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
 * Everything that create checks of a body in one pass: decodes it, checks and takes out its inline
 * media, so that bytes never lie in a task row, and lists the URLs to be fetched. Fails with all faults of fields and media together (contract 2 and 5).
 */
export const acceptBody = Effect.fn("Media.acceptBody")(function* (
  label: Label,
  input: unknown
): Effect.fn.Return<AcceptedBody, InvalidBody> {
  const crowd = crowdFaults(input)
  if (Arr.isReadonlyArrayNonEmpty(crowd)) return yield* new InvalidBody({ errors: crowd })
  const { body, faults, media, urls } = yield* extract(label, input)
  const decoded = yield* Effect.result(decodeBody(label, body))
  const all = decoded._tag === "Failure" ? [...decoded.failure.errors, ...faults] : faults
  if (Arr.isReadonlyArrayNonEmpty(all)) return yield* new InvalidBody({ errors: capFaults(all) })
  return { body: yield* Effect.fromResult(decoded), media, urls }
})

/** A body with each media text replaced, for example placeholders by stored artifacts, or these by data URIs. */
export const mapMedia = (
  label: Label,
  body: Body,
  by: (pointer: string, text: string) => string
): Effect.Effect<Body, InvalidBody> => decodeBody(label, replace(label, body, by))
