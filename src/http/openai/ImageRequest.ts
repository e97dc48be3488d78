import { Effect } from "effect"
import { fieldNames } from "../../catalog/bodies/Bodies.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import { findModel, pixelsOf, refuseWishes } from "./ShapedModel.ts"
import type { ShapedModel } from "./ShapedModel.ts"

export type ImageKind = "generations" | "edits"

/** How images are returned; absent: each as both, because clients look for one of them without asking. */
export type ImageFormat = "url" | "b64_json" | undefined

/** A request for images as the body of its model, with what is wrong with it. */
export interface ImageRequest {
  readonly model: ShapedModel
  readonly body: Readonly<Record<string, unknown>>
  readonly format: ImageFormat
  readonly faults: ReadonlyArray<FieldFault>
}

/** docs/reference/shapes.md#images */
export const imageRequestOf = (kind: ImageKind) =>
  Effect.fnUntraced(function* (
    models: ReadonlyArray<ShapedModel>,
    fields: Readonly<Record<string, unknown>>
  ) {
    const found = yield* findModel(
      models.filter(({ entry }) => entry.result === "images"),
      fields["model"]
    )
    const names = fieldNames(found.entry.label).all
    const { image, images, model: _, n, response_format, size, ...rest } = fields
    const sized = sizeOf(names, size)
    const counted = countOf(names, n)
    const pictures = kind === "edits" ? { images: picturesOf(images ?? image) } : {}
    const unasked = refuseWishes(fields, kind === "edits" ? { ...nothing, mask: [] } : nothing)
    const given = Object.entries(rest).filter(
      ([name]) => !Object.hasOwn(nothing, name) && !unread.has(name)
    )
    return {
      model: found,
      body: {
        ...Object.fromEntries(given.filter(([name]) => name !== "mask")),
        ...pictures,
        ...(kind === "generations" && image !== undefined ? { image } : {}),
        ...(kind === "generations" && images !== undefined ? { images } : {}),
        ...sized.fields,
        ...counted.fields
      },
      format: isFormat(response_format) ? response_format : undefined,
      faults: [
        ...kindFaults(kind, names.has("images")),
        ...unasked,
        ...sized.faults,
        ...counted.faults,
        ...(response_format === undefined || isFormat(response_format)
          ? []
          : [{ pointer: "#/response_format", detail: "Expected url or b64_json" }])
      ]
    } satisfies ImageRequest
  })

const isFormat = (value: unknown): value is "url" | "b64_json" =>
  value === "url" || value === "b64_json"

/** Name the client's own user to OpenAI. They are not sent on. */
const unread = new Set(["user", "safety_identifier"])

const nothing: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  quality: ["auto", "standard"],
  style: ["vivid"],
  background: ["auto"],
  moderation: ["auto"],
  output_format: ["png"],
  output_compression: [],
  input_fidelity: [],
  partial_images: [0, "0"],
  stream: [false]
}

const kindFaults = (kind: ImageKind, takesImages: boolean): ReadonlyArray<FieldFault> =>
  takesImages === (kind === "edits")
    ? []
    : [
        {
          pointer: "#/model",
          detail: takesImages
            ? "This model edits images: call /v1/images/edits"
            : "This model makes images of words: call /v1/images/generations"
        }
      ]

interface Part {
  readonly fields: Readonly<Record<string, unknown>>
  readonly faults: ReadonlyArray<FieldFault>
}

/** Presets whose pixels are known; any other shape is asked for by the model's own fields. */
const presets: ReadonlyMap<string, object> = new Map([
  ["1024*1024", { aspect_ratio: "1:1", resolution: "1K" }],
  ["2048*2048", { aspect_ratio: "1:1", resolution: "2K" }]
])

const sizeOf = (names: ReadonlySet<string>, size: unknown): Part => {
  if (size === undefined || size === "auto") return { fields: {}, faults: [] }
  const pixels = typeof size === "string" ? pixelsOf(size) : size
  if (names.has("size")) return { fields: { size: pixels }, faults: [] }
  const preset = typeof pixels === "string" ? presets.get(pixels) : undefined
  if (preset !== undefined && names.has("aspect_ratio"))
    return { fields: { ...preset }, faults: [] }
  const detail = `Expected ${[...presets.keys()].join(" or ").replaceAll("*", "x")}, or aspect_ratio and resolution`
  return { fields: {}, faults: [{ pointer: "#/size", detail }] }
}

/** One image, as at OpenAI, where the model's own default may be more. */
const countOf = (names: ReadonlySet<string>, n: unknown): Part => {
  if (names.has("n")) return { fields: { n: n ?? 1 }, faults: [] }
  const faults =
    n === undefined || n === 1
      ? []
      : [{ pointer: "#/n", detail: "This model makes one image a request" }]
  return { fields: {}, faults }
}

/** Files, URLs or Base64; in JSON also `{ image_url }`, as OpenAI has them. */
const picturesOf = (given: unknown): unknown => {
  if (given === undefined) return undefined
  return [given].flat().map((it: unknown) => {
    const isObject = typeof it === "object" && it !== null && "image_url" in it
    return isObject ? it.image_url : it
  })
}
