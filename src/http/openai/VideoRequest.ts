import { Effect } from "effect"
import { fieldNames } from "../../catalog/bodies/Bodies.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import { pictureField, secondsFields, sizeFields } from "./DescribedFields.ts"
import { findModel } from "./ShapedModel.ts"
import type { ShapedModel } from "./ShapedModel.ts"

/** A request for a video, translated to the body of its model, with its faults. */
export interface VideoRequest {
  readonly model: ShapedModel
  readonly body: Readonly<Record<string, unknown>>
  readonly faults: ReadonlyArray<FieldFault>
}

/** Translates a request for a video. docs/reference/shapes.md#videos */
export const videoRequestOf = Effect.fnUntraced(function* (
  models: ReadonlyArray<ShapedModel>,
  fields: Readonly<Record<string, unknown>>
) {
  const found = yield* findModel(
    models.filter(({ entry }) => entry.result === "videos"),
    fields["model"]
  )
  const { input_reference, model: _, seconds, size, ...rest } = fields
  const sized = sizeOf(found.entry, size)
  const pictured = pictureOf(found.entry, input_reference)
  return {
    model: found,
    body: {
      ...rest,
      ...sized.fields,
      ...pictured.fields,
      ...(seconds === undefined ? {} : lengthOf(found.entry, seconds))
    },
    faults: [...sized.faults, ...pictured.faults]
  } satisfies VideoRequest
})

interface Part {
  readonly fields: Readonly<Record<string, unknown>>
  readonly faults: ReadonlyArray<FieldFault>
}

const lengthOf = ({ described }: CatalogEntry, seconds: unknown) =>
  described === undefined ? { duration: numberOf(seconds) } : secondsFields(described, seconds)

/** OpenAI sends seconds as a text. */
const numberOf = (seconds: unknown): unknown =>
  typeof seconds === "string" && /^\d{1,4}$/u.test(seconds) ? Number(seconds) : seconds

/** Image-to-video models have a resolution tier instead of a size; the image determines the aspect ratio. */
const tiers: ReadonlyMap<string, string> = new Map([
  ["832*480", "480P"],
  ["480*832", "480P"],
  ["1280*720", "720P"],
  ["720*1280", "720P"],
  ["1920*1080", "1080P"],
  ["1080*1920", "1080P"]
])

/** The size to report for a tier, if the body contains no size in pixels. */
export const sizeOfTier = (tier: unknown): string | undefined =>
  [...tiers].find(([, it]) => it === tier)?.[0]

/** `1280x720` in the form that model bodies use: `1280*720`. */
const pixelsOf = (size: string): string =>
  size.replace(
    /^(\d{1,9})x(\d{1,9})$/iu,
    (_, width: string, height: string) => `${width}*${height}`
  )

const sizeOf = (entry: CatalogEntry, size: unknown): Part => {
  if (size === undefined) return { fields: {}, faults: [] }
  const { described } = entry
  if (described !== undefined) {
    const fields = typeof size === "string" ? sizeFields(described, size) : undefined
    const faults = [{ pointer: "#/size", detail: "This model has no such size in pixels" }]
    return fields === undefined ? { fields: {}, faults } : { fields, faults: [] }
  }
  const names = fieldNames(entry).all
  const pixels = typeof size === "string" ? pixelsOf(size) : size
  if (names.has("size")) return { fields: { size: pixels }, faults: [] }
  const resolution = typeof pixels === "string" ? tiers.get(pixels) : undefined
  if (resolution !== undefined) return { fields: { resolution }, faults: [] }
  const detail = `Expected ${[...tiers.keys()].join(", ").replaceAll("*", "x")}, or resolution`
  return { fields: {}, faults: [{ pointer: "#/size", detail }] }
}

/** The input image: a file, a URL, Base64, or OpenAI's `{ image_url }`. */
const pictureOf = (entry: CatalogEntry, reference: unknown): Part => {
  if (reference === undefined) return { fields: {}, faults: [] }
  const detail = "This model has no first picture"
  const { isList = false, name = "image" } =
    (entry.described && pictureField(entry.described)) ?? {}
  if (!fieldNames(entry).all.has(name)) {
    return { fields: {}, faults: [{ pointer: "#/input_reference", detail }] }
  }
  const isObject = typeof reference === "object" && reference !== null && "image_url" in reference
  const picture: unknown = isObject ? reference.image_url : reference
  return { fields: { [name]: isList ? [picture] : picture }, faults: [] }
}
