import { Effect, Result } from "effect"
import { readBmp } from "./Bmp.ts"
import { mimesOf } from "./Formats.ts"
import type { ImageFormat, ImageHeader } from "./Formats.ts"
import { readJpeg } from "./Jpeg.ts"
import type { ImageRules } from "./MediaRules.ts"
import { checkedFormat, MediaFault } from "./MediaRules.ts"
import { readPng } from "./Png.ts"
import { readWebp } from "./Webp.ts"

/** An image that complies with the rules of its field. */
export interface ImageInfo extends ImageHeader {
  readonly kind: "image"
  /** The true media type, by magic bytes. */
  readonly mime: string
  readonly bytes: number
}

const readers = {
  PNG: readPng,
  JPEG: readJpeg,
  WEBP: readWebp,
  BMP: readBmp
} satisfies Record<ImageFormat, (bytes: Uint8Array) => Result.Result<ImageHeader, string>>

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
    ? "Expected a PNG without transparency, got one with an alpha channel or a transparent colour"
    : undefined
}

/**
 * Checks an image by its bytes only: format, size, width, height, transparency. Animated, truncated and
 * empty files, false headers and files of two formats are refused. No pixel is decoded.
 * docs/reference/models.md#inspection
 */
export const inspectImage = (
  bytes: Uint8Array,
  rules: ImageRules
): Effect.Effect<ImageInfo, MediaFault> => {
  const checked = checkedFormat(bytes, rules).pipe(
    Result.flatMap((format) => readers[format](bytes)),
    Result.flatMap((image): Result.Result<ImageInfo, string> => {
      const detail = ruleFault(image, rules)
      return detail === undefined
        ? Result.succeed({
            ...image,
            kind: "image",
            mime: mimesOf[image.format][0],
            bytes: bytes.length
          })
        : Result.fail(detail)
    })
  )
  return Effect.fromResult(Result.mapError(checked, (detail) => new MediaFault({ detail })))
}
