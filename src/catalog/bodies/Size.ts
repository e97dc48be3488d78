import { Effect, Schema } from "effect"
import {
  imageEditAspectRatioMax,
  imageEditPixelsMax,
  imageEditPixelsMin
} from "../../domain/limits/Limits.ts"
import { describeValue } from "../FieldFaults.ts"

/** Sizes of each tier, `width*height` in pixels. docs/reference/requirements.md#r-model-6 */
export const videoSizes = {
  "720P": ["1280*720", "720*1280", "960*960", "1088*832", "832*1088"],
  "1080P": ["1920*1080", "1080*1920", "1440*1440", "1632*1248", "1248*1632"]
} as const

export type VideoTier = "480P" | "720P" | "1080P"

/** The tier of a size, which determines the price per second. */
export const tierOfSize = (size: string): VideoTier =>
  videoSizes["1080P"].some((it) => it === size) ? "1080P" : "720P"

const pattern = /^([1-9]\d{0,8})\*([1-9]\d{0,8})$/u

/** Inclusive bounds of a free size. */
export interface SizeRules {
  readonly pixelsMin?: number
  readonly pixelsMax?: number
  /** The longer side is at most this many times the shorter one. */
  readonly aspectRatioMax?: number
  readonly sideMin?: number
  readonly sideMax?: number
}

const pixelFault = (width: number, height: number, rules: SizeRules): string | undefined => {
  const { pixelsMin = 1, pixelsMax = Infinity } = rules
  const pixels = width * height
  return pixels >= pixelsMin && pixels <= pixelsMax
    ? undefined
    : `Expected ${pixelsMin} to ${pixelsMax} pixels in total, got ${pixels}`
}

const aspectFault = (width: number, height: number, rules: SizeRules): string | undefined => {
  const { aspectRatioMax: ratio = Infinity } = rules
  return Math.max(width, height) <= ratio * Math.min(width, height)
    ? undefined
    : `Expected an aspect ratio between 1:${ratio} and ${ratio}:1, got ${width}:${height}`
}

const sideFault = (width: number, height: number, rules: SizeRules): string | undefined => {
  const { sideMin = 1, sideMax = Infinity } = rules
  return Math.min(width, height) >= sideMin && Math.max(width, height) <= sideMax
    ? undefined
    : `Expected a width and a height of ${sideMin} to ${sideMax} pixels each, got ${width}*${height}`
}

/** The faults of a size. */
export const sizeFaults = (
  { height, width }: { readonly width: number; readonly height: number },
  rules: SizeRules
): ReadonlyArray<string> =>
  [pixelFault, aspectFault, sideFault].flatMap((fault) => {
    const detail = fault(width, height, rules)
    return detail === undefined ? [] : [detail]
  })

/** A size of the form `width*height` in pixels, within bounds. */
export const freeSize = (rules: SizeRules) =>
  Schema.String.check(
    Schema.makeFilter<string>(
      (text) => {
        const match = pattern.exec(text)
        if (match === null) {
          return `Expected "width*height" in pixels, such as "1280*1280", got ${describeValue(text)}`
        }
        return [...sizeFaults({ width: Number(match[1]), height: Number(match[2]) }, rules)]
      },
      { toJsonSchema: () => ({ pattern: pattern.source }) }
    )
  )

/** Bounded by area and aspect ratio. docs/reference/requirements.md#r-model-35 */
export const areaSize: SizeRules = {
  pixelsMin: imageEditPixelsMin,
  pixelsMax: imageEditPixelsMax,
  aspectRatioMax: imageEditAspectRatioMax
}

export const AreaSize = Schema.NullOr(freeSize(areaSize))
  .annotate({
    default: "1280*1280",
    description:
      "`width*height`; total pixels between 768*768 and 1440*1440, aspect ratio between 1:4 and 4:1; " +
      "`null` leaves the choice to the model"
  })
  .pipe(Schema.withDecodingDefaultKey(Effect.succeed("1280*1280")))
