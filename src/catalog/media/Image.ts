import { Effect, Result } from "effect"
import { readBmp } from "./Bmp.ts"
import { mimesOf } from "./Formats.ts"
import type { ImageFormat, ImageHeader } from "./Formats.ts"
import { readJpeg } from "./Jpeg.ts"
import type { ImageRules } from "./MediaRules.ts"
import { checkedFormat, MediaFault } from "./MediaRules.ts"
import { readPng } from "./Png.ts"
import { inSlices } from "./Slices.ts"
import type { Sliced } from "./Slices.ts"
import { readWebp } from "./Webp.ts"

/** An image that complies with the rules of its field. */
export interface ImageInfo extends ImageHeader {
  readonly kind: "image"
  /** The true media type, by magic bytes. */
  readonly mime: string
  /** Without data after the end of the file. */
  readonly content: Uint8Array
}

const readers = { PNG: readPng, WEBP: readWebp, BMP: readBmp }

const read = function* (
  format: ImageFormat,
  bytes: Uint8Array
): Sliced<Result.Result<ImageHeader, string>> {
  return format === "JPEG" ? yield* readJpeg(bytes) : readers[format](bytes)
}

const ruleFault = (image: ImageHeader, rules: ImageRules): string | undefined => {
  const { format, height, width } = image
  const { sideMax, sideMin } = rules
  if (width === 0 || height === 0) return `The ${format} is empty: ${width}*${height} pixels`
  if (
    width < sideMin ||
    height < sideMin ||
    (sideMax !== undefined && Math.max(width, height) > sideMax)
  ) {
    const range = sideMax === undefined ? `at least ${sideMin}` : `${sideMin} to ${sideMax}`
    return `Expected a width and a height of ${range} pixels each, got ${width}*${height}`
  }
  return rules.pngTransparency === "refused" && format === "PNG" && image.alpha
    ? "Expected a PNG without transparency, got one with an alpha channel or a transparent color"
    : undefined
}

/**
 * Checks an image by its bytes only: format, size, width, height and transparency. Refuses animated, truncated and
 * empty files and false headers. Cuts off data after the end of the file. Pixels are not decoded.
 * docs/reference/models.md#inspection
 */
export const inspectImage = Effect.fnUntraced(function* (bytes: Uint8Array, rules: ImageRules) {
  const format = checkedFormat(bytes, rules)
  if (Result.isFailure(format)) return yield* new MediaFault({ detail: format.failure })
  const header = yield* inSlices(() => read(format.success, bytes))
  if (Result.isFailure(header)) return yield* new MediaFault({ detail: header.failure })
  const detail = ruleFault(header.success, rules)
  if (detail !== undefined) return yield* new MediaFault({ detail })
  return {
    ...header.success,
    kind: "image",
    mime: mimesOf[format.success][0],
    content: bytes.subarray(0, header.success.end)
  } satisfies ImageInfo
})
