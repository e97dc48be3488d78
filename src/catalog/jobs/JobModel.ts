import { Schema } from "effect"
import { imageBytesMax, videoBytesMax, audioBytesMax } from "../../domain/limits/Limits.ts"
import { MediaKind } from "../../domain/task/Task.ts"
import type { CatalogEntry } from "../CatalogEntry.ts"
import type { MediaRules } from "../media/MediaRules.ts"
import { Action, PathSegment } from "../PathSegment.ts"
import { CallPrice, ExpressionPrice } from "../Price.ts"
import { priceRowFields } from "../PriceRow.ts"
import { BodySchema } from "./DescribedBody.ts"
import { Expression } from "./Expression.ts"
import { SubmitBody } from "./JobProtocol.ts"

/**
 * How a medium is sent: as the client's https URL or else a data URI (`auto`, the default), always as a data URI, as
 * bare Base64, or as a URL that the vendor can fetch, which needs a public `BASE_URL`.
 */
const SentAs = Schema.optionalKey(Schema.Literals(["auto", "data-uri", "base64", "url"]))

const formatsOf = <const F extends ReadonlyArray<string>>(formats: F) =>
  Schema.optionalKey(
    Schema.Array(Schema.Literals(formats)).check(
      Schema.isMinLength(1, { message: "Expected at least one" })
    )
  )

const bytes = (maximum: number) =>
  Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })))

const pixels = Schema.optionalKey(
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65_535 }))
)

const seconds = Schema.optionalKey(
  Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 3600 }))
)

/** What a media field, or each item of a list field, accepts. */
const MediaField = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("image"),
    formats: formatsOf(["JPEG", "PNG", "BMP", "WEBP"]),
    bytesMax: bytes(imageBytesMax),
    sideMin: pixels,
    sideMax: pixels,
    sentAs: SentAs
  }),
  Schema.Struct({
    kind: Schema.Literal("audio"),
    formats: formatsOf(["WAV", "MP3"]),
    bytesMax: bytes(audioBytesMax),
    secondsMin: seconds,
    secondsMax: seconds,
    sentAs: SentAs
  }),
  Schema.Struct({
    kind: Schema.Literal("video"),
    bytesMax: bytes(videoBytesMax),
    sentAs: SentAs
  })
])
export type MediaField = typeof MediaField.Type

/** The members of an entry that describe its body and request. */
export const Described = Schema.Struct({
  body: BodySchema,
  /** Rules of media, by body field. */
  media: Schema.optionalKey(Schema.Record(Schema.String, MediaField)),
  /** The number of ordered results. If absent, the task accepts as many as the vendor makes. */
  count: Schema.optionalKey(Expression("price")),
  submit: Schema.optionalKey(Schema.Struct(SubmitBody))
})
export type Described = typeof Described.Type

/** A model of a job vendor. docs/vendors-as-files.md#job-vendors */
export const JobModel = Schema.Struct({
  model: PathSegment,
  /** The vendor's model id, if it differs from `model`. */
  upstreamModel: Schema.optionalKey(Schema.NonEmptyString),
  action: Schema.optionalKey(Action),
  result: MediaKind,
  ...Described.fields,
  price: Schema.Union([CallPrice, ExpressionPrice]),
  ...priceRowFields(Schema.Union([CallPrice, ExpressionPrice])),
  artifacts: Schema.optionalKey(Schema.Literals(["copy", "vendor-url"]))
})
export type JobModel = typeof JobModel.Type

/** The catalog entry of a model at its vendor, with the adapter that runs it. */
export const entryOf = (
  { adapter, vendor }: Pick<CatalogEntry, "adapter" | "vendor">,
  { action, artifacts, body, count, media, model, submit, upstreamModel, ...row }: JobModel
): CatalogEntry => ({
  ...row,
  vendor,
  model,
  label: `${vendor}/${model}`,
  action: action ?? "generation",
  adapter,
  upstreamModel: upstreamModel ?? model,
  artifacts: artifacts ?? "copy",
  described: {
    body,
    ...(media === undefined ? {} : { media }),
    ...(count === undefined ? {} : { count }),
    ...(submit === undefined ? {} : { submit })
  }
})

/** The rules that media of a field must meet. */
export const rulesOf = (field: MediaField): MediaRules => {
  switch (field.kind) {
    case "image":
      return {
        kind: "image",
        formats: field.formats ?? ["JPEG", "PNG", "BMP", "WEBP"],
        bytesMax: field.bytesMax ?? imageBytesMax,
        sideMin: field.sideMin ?? 1,
        ...(field.sideMax === undefined ? {} : { sideMax: field.sideMax }),
        pngTransparency: "allowed"
      }
    case "audio":
      return {
        kind: "audio",
        formats: field.formats ?? ["WAV", "MP3"],
        bytesMax: field.bytesMax ?? audioBytesMax,
        secondsMin: field.secondsMin ?? 0,
        secondsMax: field.secondsMax ?? 3600
      }
    case "video":
      return { kind: "video", formats: ["MP4"], bytesMax: field.bytesMax ?? videoBytesMax }
  }
}
