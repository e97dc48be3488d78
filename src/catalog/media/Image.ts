import { Effect, Result } from "effect"
import { i32le, truncated, u16le, u32le } from "./Bytes.ts"
import { mimesOf } from "./Formats.ts"
import type { ImageFormat, ImageHeader } from "./Formats.ts"
import { readJpeg } from "./Jpeg.ts"
import { checkedFormat, MediaFault } from "./MediaRules.ts"
import type { ImageRules } from "./MediaRules.ts"
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

const infoSizes = new Set([12, 40, 52, 56, 64, 108, 124])
const depths = new Set([1, 4, 8, 16, 24, 32])

/** Compressions whose data length follows from width and height: none, and bit fields. */
const plain = new Set([0, 3, 6])

/** Reads the header and compares its lengths with the bytes; pixels are not decoded. */
const readBmp = (bytes: Uint8Array): Result.Result<ImageHeader, string> => {
  const infoSize = u32le(bytes, 14)
  if (bytes.length < 14 + 12 || bytes.length < 14 + infoSize) return Result.fail(truncated)
  if (!infoSizes.has(infoSize)) return Result.fail("The BMP header is of an unknown kind")
  const isCore = infoSize === 12
  const width = isCore ? u16le(bytes, 18) : i32le(bytes, 18)
  const height = isCore ? u16le(bytes, 20) : Math.abs(i32le(bytes, 22))
  const depth = u16le(bytes, isCore ? 24 : 28)
  const compression = isCore ? 0 : u32le(bytes, 30)
  if (width < 0 || !depths.has(depth) || compression > 6) {
    return Result.fail("The BMP header has an invalid combination of values")
  }
  const pixelsAt = u32le(bytes, 10)
  const stored = plain.has(compression)
    ? Math.ceil((width * depth) / 32) * 4 * height
    : u32le(bytes, 34)
  if (pixelsAt < 14 + infoSize || pixelsAt + stored > bytes.length) return Result.fail(truncated)
  // Some writers leave the file size 0
  const end = Math.max(pixelsAt + stored, u32le(bytes, 2))
  return end > bytes.length
    ? Result.fail(truncated)
    : Result.succeed({ format: "BMP", width, height, alpha: false, end })
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
