import { Effect } from "effect"
import { fieldNames } from "../../catalog/bodies/Bodies.ts"
import { defaultSize, nearestSize, pixelsOf } from "../../catalog/bodies/ImageSizes.ts"
import type { ImageSize } from "../../catalog/bodies/ImageSizes.ts"
import { imageNames } from "../../catalog/BuiltInModels.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { describeValue } from "../../catalog/FieldFaults.ts"
import { shapedImagesMax } from "../../domain/limits/ShapeLimits.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import type { Router } from "../../tasks/creation/Router.ts"
import { countField, needsPicture, pictureField, sizeFields } from "./DescribedFields.ts"
import { findModel, isNamed, unsupportedFields } from "./ShapedModel.ts"
import type { ShapedModel } from "./ShapedModel.ts"

export type ImageKind = "generations" | "edits"

/**
 * How images are returned. Absent: with both URL and Base64, because clients expect one of them without requesting it.
 */
export type ImageFormat = "url" | "b64_json" | undefined

/** A request for images, translated to the body of its model, with its faults. */
export interface ImageRequest {
  readonly model: ShapedModel
  /** Whether the request names a model that the catalog replaces with this one. */
  readonly isStandIn: boolean
  /** The body for one image, because each task makes one. */
  readonly body: Readonly<Record<string, unknown>>
  readonly count: number
  readonly format: ImageFormat
  /** The size that was chosen for the model. Absent: the model decides. */
  readonly size: string | undefined
  /** Fields that request something but have no effect here. */
  readonly ignored: ReadonlyArray<string>
  readonly faults: ReadonlyArray<FieldFault>
}

type Takes = Router["Service"]["takes"]

/** Translates a request for images. docs/reference/shapes.md#images */
export const imageRequestOf = (kind: ImageKind, takes: Takes) =>
  Effect.fnUntraced(function* (
    models: ReadonlyArray<ShapedModel>,
    fields: Readonly<Record<string, unknown>>
  ) {
    const found = yield* findImageModel(models, kind, fields["model"])
    const { entry } = found
    const { image, images, model: _, n, response_format, size, ...rest } = fields
    const own = Object.fromEntries(
      Object.entries(rest).filter(([name]) => !Object.hasOwn(refused, name) && !isIgnored(name))
    )
    const sized = sizeFor(entry, size, own, (fields) => takes(entry, fields))
    const counted = countOf(n)
    const pictures = kind === "edits" ? withPictures(entry, picturesOf(images ?? image)) : {}
    return {
      model: found,
      isStandIn: !isNamed(found, fields["model"]),
      body: {
        ...own,
        ...pictures,
        ...(kind === "generations" && image !== undefined ? { image } : {}),
        ...(kind === "generations" && images !== undefined ? { images } : {}),
        ...sized.fields,
        ...oneOf(entry)
      },
      count: counted.count,
      format: isFormat(response_format) ? response_format : undefined,
      size: sized.name,
      ignored: [...ignoredIn(rest), ...(sized.isIgnored ? ["size"] : [])],
      faults: [
        ...kindFaults(kind, needsPicture(entry)),
        ...unsupportedFields(fields, refused),
        ...sized.faults,
        ...counted.faults,
        ...(response_format === undefined || isFormat(response_format)
          ? []
          : [{ pointer: "#/response_format", detail: "Expected url or b64_json" }])
      ]
    } satisfies ImageRequest
  })

/** Each task makes one image. */
const oneOf = (entry: CatalogEntry) => {
  const name = entry.described === undefined ? "n" : (countField(entry.described) ?? "n")
  return fieldNames(entry).all.has(name) ? { [name]: 1 } : {}
}

const withPictures = (
  { described }: CatalogEntry,
  pictures: ReadonlyArray<unknown> | undefined
) => {
  if (described === undefined) return { images: pictures }
  const { isList = true, name = "image" } = pictureField(described) ?? {}
  return { [name]: isList || pictures?.length !== 1 ? pictures : pictures[0] }
}

const findImageModel = (models: ReadonlyArray<ShapedModel>, kind: ImageKind, name: unknown) => {
  const all = models.filter(({ entry }) => entry.result === "images")
  const label = all.some((it) => isNamed(it, name)) ? undefined : imageNames.get(name)?.[kind]
  const standIn = label && all.find(({ entry }) => entry.label === label)
  return standIn === undefined ? findModel(all, name) : Effect.succeed(standIn)
}

const isFormat = (value: unknown): value is "url" | "b64_json" =>
  value === "url" || value === "b64_json"

/** Fields whose other values are refused, because the client could not use the response without them. */
const refused: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  background: ["auto", "opaque"],
  output_format: ["png"],
  stream: [false],
  mask: []
}

/** Values with which OpenAI's other fields request nothing. No model here has these fields. */
const ignored: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  quality: ["auto", "standard"],
  style: ["vivid"],
  moderation: ["auto"],
  output_compression: [],
  input_fidelity: [],
  partial_images: [0, "0"],
  user: [],
  safety_identifier: []
}

const isIgnored = (name: string): boolean => Object.hasOwn(ignored, name)

const ignoredIn = (fields: Readonly<Record<string, unknown>>): ReadonlyArray<string> =>
  Object.keys(ignored).filter(
    (name) => fields[name] !== undefined && ignored[name]?.includes(fields[name]) !== true
  )

/** Checks that the model fits the route. A model with optional input images can also generate from text alone. */
const kindFaults = (kind: ImageKind, needs: boolean | undefined): ReadonlyArray<FieldFault> => {
  if (kind === "edits" ? needs !== undefined : needs !== true) return []
  const detail =
    kind === "edits"
      ? "This model creates images from text: call /v1/images/generations"
      : "This model edits images: call /v1/images/edits"
  return [{ pointer: "#/model", detail }]
}

interface Sized {
  readonly fields?: ImageSize["fields"]
  readonly name?: string
  readonly isIgnored?: boolean
  readonly faults: ReadonlyArray<FieldFault>
}

/** The model's nearest size. `auto` selects the label's default; without a size, nothing is set. */
const sizeFor = (
  { described, label }: CatalogEntry,
  size: unknown,
  own: Readonly<Record<string, unknown>>,
  isTaken: (fields: ImageSize["fields"]) => boolean
): Sized => {
  if (size === undefined) return { faults: [] }
  const isAuto = size === "auto"
  if (described !== undefined && typeof size === "string") {
    const fields = isAuto ? undefined : sizeFields(described, size)
    return fields === undefined
      ? { isIgnored: !isAuto, faults: [] }
      : { fields, name: size, faults: [] }
  }
  const asked = typeof size === "string" ? pixelsOf(size) : undefined
  if (!isAuto && asked === undefined) {
    const detail = `Expected a size such as 1024x1024, or auto, got ${describeValue(size)}`
    return { faults: [{ pointer: "#/size", detail }] }
  }
  const wanted = asked ?? defaultSize(label)
  const nearest = wanted && nearestSize(label, wanted, isTaken)
  if (nearest === undefined) return { isIgnored: !isAuto, faults: [] }
  // The request already sets the size in the model's own field
  const isOwn = isAuto && Object.keys(nearest.fields).some((name) => Object.hasOwn(own, name))
  return isOwn ? { faults: [] } : { fields: nearest.fields, name: nearest.name, faults: [] }
}

const countOf = (n: unknown) => {
  const isCount = typeof n === "number" && Number.isInteger(n) && n >= 1 && n <= shapedImagesMax
  if (n === undefined || isCount) return { count: isCount ? n : 1, faults: [] }
  const detail = `Expected an integer between 1 and ${shapedImagesMax}, got ${describeValue(n)}`
  return { count: 1, faults: [{ pointer: "#/n", detail }] }
}

/** The images of a request: files, URLs or Base64, and in JSON also OpenAI's `{ image_url }`. */
const picturesOf = (given: unknown): ReadonlyArray<unknown> | undefined => {
  if (given === undefined) return undefined
  return [given].flat().map((it: unknown) => {
    const isObject = typeof it === "object" && it !== null && "image_url" in it
    return isObject ? it.image_url : it
  })
}
