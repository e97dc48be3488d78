import { Result } from "effect"
import { i32le, truncated, u16le, u32le } from "./Bytes.ts"
import type { ImageHeader } from "./Formats.ts"

const infoSizes = new Set([12, 40, 52, 56, 64, 108, 124])
const depths = new Set([1, 4, 8, 16, 24, 32])

/** Compressions whose data length follows from width and height: none, and bit fields. */
const plain = new Set([0, 3, 6])

/** Reads the header and compares its lengths with the bytes; pixels are not decoded. */
export const readBmp = (bytes: Uint8Array): Result.Result<ImageHeader, string> => {
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
