import { jsonSchemaOf } from "./Bodies.ts"
import type { Label } from "./Bodies.ts"
import { imageEditMaxSize } from "./ImageEditMax.ts"
import { aspectRatios, resolutions } from "./ImageEditPro.ts"
import { areaSize, sizeFaults } from "./Size.ts"
import type { SizeRules } from "./Size.ts"
import { textToImageMaxSizes } from "./TextToImageMax.ts"

export interface Pixels {
  readonly width: number
  readonly height: number
}

/** A size that a model supports, and the body fields that request it. */
export interface ImageSize extends Pixels {
  readonly fields: Readonly<Record<string, string>>
  /** `1536x1024`, or the preset as `3:2 1K`. */
  readonly name: string
}

const sizeOf = ({ height, width }: Pixels): ImageSize => ({
  width,
  height,
  fields: { size: `${width}*${height}` },
  name: `${width}x${height}`
})

/** Parses `1024x1024`, or `1024*1024` as in the bodies of models. */
export const pixelsOf = (text: string): Pixels | undefined => {
  const [, width, height] = /^([1-9]\d{0,8})[x*]([1-9]\d{0,8})$/iu.exec(text) ?? []
  return width === undefined || height === undefined
    ? undefined
    : { width: Number(width), height: Number(height) }
}

const sides = { "1K": 1024, "2K": 2048 }

const presets: ReadonlyArray<ImageSize> = aspectRatios.flatMap((ratio) =>
  resolutions.map((resolution) => {
    const [wide = 1, high = 1] = ratio.split(":").map(Number)
    const side = sides[resolution]
    return {
      width: side * Math.sqrt(wide / high),
      height: side * Math.sqrt(high / wide),
      fields: { aspect_ratio: ratio, resolution },
      name: `${ratio} ${resolution}`
    }
  })
)

/** Further candidates for models that support any size within bounds, because some vendors support only these. */
const usual: ReadonlyArray<Pixels> = [
  { width: 1024, height: 1024 },
  { width: 1536, height: 1024 },
  { width: 1024, height: 1536 }
]

const ratios = [1 / 4, 1 / 3, 1 / 2, 9 / 16, 2 / 3, 3 / 4, 1, 4 / 3, 3 / 2, 16 / 9, 2, 3, 4]

/** Sides are multiples of 1, or of 16 for vendors that require it. */
const grids = [1, 16]

const around = (side: number, grid: number): ReadonlyArray<number> => [
  Math.floor(side / grid) * grid,
  Math.ceil(side / grid) * grid
]

/** Sizes of one ratio with the wanted area, or the nearest area within the bounds. */
const ofRatio = (ratio: number, area: number, rules: SizeRules): ReadonlyArray<Pixels> => {
  const { pixelsMax = Infinity, pixelsMin = 1, sideMax = Infinity, sideMin = 1 } = rules
  const stretch = Math.max(ratio, 1 / ratio)
  const least = Math.max(pixelsMin, sideMin ** 2 * stretch)
  const most = Math.min(pixelsMax, sideMax ** 2 / stretch)
  const allowed = Math.min(Math.max(area, least), most)
  return grids.flatMap((grid) =>
    around(Math.sqrt(allowed * ratio), grid).flatMap((width) =>
      around(Math.sqrt(allowed / ratio), grid).map((height) => ({ width, height }))
    )
  )
}

const within =
  (rules: SizeRules) =>
  (wanted: Pixels): ReadonlyArray<ImageSize> => {
    const { height, width } = wanted
    const sizes = [width / height, ...ratios].flatMap((ratio) =>
      ofRatio(ratio, width * height, rules)
    )
    return [wanted, ...sizes, ...usual]
      .filter((it) => sizeFaults(it, rules).length === 0)
      .map(sizeOf)
  }

/** The candidate sizes for a requested size, by label. */
const byLabel: Partial<Record<Label, (wanted: Pixels) => ReadonlyArray<ImageSize>>> = {
  "text-to-image-max": () =>
    textToImageMaxSizes.flatMap((size) => {
      const pixels = pixelsOf(size)
      return pixels === undefined ? [] : [sizeOf(pixels)]
    }),
  "text-to-image-preview": within(areaSize),
  "image-edit": within(areaSize),
  "image-edit-max": within(imageEditMaxSize),
  "image-edit-pro": () => presets
}

const choices = new Map(Object.entries(byLabel))

const defaultOf = (label: string, field: string): unknown => {
  const property = Object.entries(jsonSchemaOf(label)["properties"] ?? {}).find(
    ([name]) => name === field
  )
  return Object(property?.[1])["default"]
}

/** The model's default size, if its body defines one. */
export const defaultSize = (label: string): Pixels | undefined => {
  const size = defaultOf(label, "size")
  if (typeof size === "string") return pixelsOf(size)
  const fields = ["aspect_ratio", "resolution"].map((field) => [field, defaultOf(label, field)])
  return presets.find((preset) => fields.every(([f, value]) => preset.fields[String(f)] === value))
}

const distance = (a: number, b: number): number => Math.abs(Math.log(a / b))

/** The nearest supported size, by aspect ratio, then by area. docs/reference/shapes.md#sizes */
export const nearestSize = (
  label: string,
  wanted: Pixels,
  isTaken: (fields: ImageSize["fields"]) => boolean
): ImageSize | undefined => {
  const ranked = (choices.get(label)?.(wanted) ?? []).map((size) => ({
    size,
    shape: distance(size.width / size.height, wanted.width / wanted.height),
    area: distance(size.width * size.height, wanted.width * wanted.height)
  }))
  return ranked
    .toSorted((a, b) => a.shape - b.shape || a.area - b.area)
    .find(({ size }) => isTaken(size.fields))?.size
}
