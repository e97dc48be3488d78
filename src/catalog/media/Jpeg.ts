import { Result } from "effect"
import { truncated, u16be, u8 } from "./Bytes.ts"
import type { ImageHeader } from "./Formats.ts"
import { makePartsCount, sliceBytes, tooManyParts } from "./Slices.ts"
import type { Sliced } from "./Slices.ts"

interface Picture {
  readonly width: number
  readonly height: number
  /** Offset after the end marker. */
  readonly end: number
}

/** Start-of-frame markers: C0 to CF without the tables C4, C8 and CC. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

const isRestart = (marker: number): boolean => marker >= 0xd0 && marker <= 0xd7

/** The end of the entropy-coded data that starts at `at`: the next marker that is not part of it. */
const endOfScan = function* (bytes: Uint8Array, at: number): Sliced<number> {
  for (let from = at; from < bytes.length; from += sliceBytes) {
    if (from > at) yield
    const end = Math.min(from + sliceBytes, bytes.length)
    for (let index = from; index < end; index += 1) {
      if (bytes[index] !== 0xff) continue
      const marker = u8(bytes, index + 1)
      if (marker !== 0 && marker !== 0xff && !isRestart(marker)) return index
    }
  }
  return bytes.length
}

/** Reads the first image from its start marker to its end marker. */
const readPicture = function* (bytes: Uint8Array): Sliced<Result.Result<Picture, string>> {
  const isFew = makePartsCount()
  let size: { readonly width: number; readonly height: number } | undefined
  let scans = 0
  for (let at = 2; at + 2 <= bytes.length;) {
    if (!isFew()) return Result.fail(tooManyParts)
    if (u8(bytes, at) !== 0xff) return Result.fail("The JPEG is damaged: a marker is missing")
    const marker = u8(bytes, at + 1)
    if (marker === 0xff) {
      at += 1
    } else if (marker === 0xd9) {
      return size === undefined || scans === 0
        ? Result.fail("The JPEG contains no image")
        : Result.succeed({ ...size, end: at + 2 })
    } else if (marker === 0x01 || isRestart(marker)) {
      at += 2
    } else {
      const length = u16be(bytes, at + 2)
      if (at + 2 + length > bytes.length) return Result.fail(truncated)
      if (length < 2 || marker === 0xd8 || marker === 0) {
        return Result.fail("The JPEG is damaged: a marker is wrong")
      }
      if (isFrame(marker)) {
        const found = { height: u16be(bytes, at + 5), width: u16be(bytes, at + 7) }
        const isWhole = length === 8 + 3 * u8(bytes, at + 9)
        if (size !== undefined || !isWhole) {
          return Result.fail("The JPEG declares its size twice or incorrectly")
        }
        size = found
      }
      at += 2 + length
      if (marker === 0xda) {
        if (size === undefined) return Result.fail("The JPEG contains an image without a size")
        scans += 1
        at = yield* endOfScan(bytes, at)
      }
    }
  }
  return Result.fail(truncated)
}

/**
 * Reads a JPEG marker by marker to the end of its first image. Pixels are not decoded. Phones append further images, a
 * video or their own tables.
 */
export const readJpeg = function* (bytes: Uint8Array): Sliced<Result.Result<ImageHeader, string>> {
  const picture = yield* readPicture(bytes)
  return Result.map(picture, (found) => ({ format: "JPEG", alpha: false, ...found }))
}
