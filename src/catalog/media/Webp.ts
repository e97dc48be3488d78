import { Result } from "effect"
import { endOfRiff, latin1, truncated, u16le, u24le, u32le, u8 } from "./Bytes.ts"
import type { ImageHeader } from "./Formats.ts"
import { makePartsCount, tooManyParts } from "./Slices.ts"

interface Frame {
  readonly width: number
  readonly height: number
  readonly alpha: boolean
}

const damaged = Result.fail("The WEBP is damaged: its image has no valid header")

/** Lossy: a VP8 key frame. */
const readLossy = (bytes: Uint8Array, at: number, length: number): Result.Result<Frame, string> =>
  length < 10 || (u8(bytes, at) & 1) !== 0 || u24le(bytes, at + 3) !== 0x2a019d
    ? damaged
    : Result.succeed({
        width: u16le(bytes, at + 6) & 0x3fff,
        height: u16le(bytes, at + 8) & 0x3fff,
        alpha: false
      })

/** Lossless: 14 bits of width and height each, then the alpha bit. */
const readLossless = (
  bytes: Uint8Array,
  at: number,
  length: number
): Result.Result<Frame, string> => {
  if (length < 5 || u8(bytes, at) !== 0x2f) return damaged
  const bits = u32le(bytes, at + 1)
  return Result.succeed({
    width: (bits & 0x3fff) + 1,
    height: ((bits >>> 14) & 0x3fff) + 1,
    alpha: ((bits >>> 28) & 1) === 1
  })
}

/** Reads a WEBP chunk by chunk to its end; pixels are not decoded. */
export const readWebp = (bytes: Uint8Array): Result.Result<ImageHeader, string> => {
  const end = endOfRiff(bytes)
  if (end === undefined) return Result.fail(truncated)
  let canvas: Frame | undefined
  let frame: Frame | undefined
  const isFew = makePartsCount()
  for (let at = 12; at < end;) {
    if (!isFew()) return Result.fail(tooManyParts)
    const type = latin1(bytes, at, 4)
    const length = u32le(bytes, at + 4)
    const body = at + 8
    if (body + length > end) return Result.fail(truncated)
    if (type === "ANIM" || type === "ANMF") return Result.fail("The WEBP is animated")
    if (type === "VP8X" && length >= 10) {
      const flags = u8(bytes, body)
      if ((flags & 0x02) !== 0) return Result.fail("The WEBP is animated")
      canvas = {
        width: u24le(bytes, body + 4) + 1,
        height: u24le(bytes, body + 7) + 1,
        alpha: (flags & 0x10) !== 0
      }
    }
    if ((type === "VP8 " || type === "VP8L") && frame === undefined) {
      const read = (type === "VP8L" ? readLossless : readLossy)(bytes, body, length)
      if (Result.isFailure(read)) return Result.fail(read.failure)
      frame = read.success
    }
    at = body + length + (length % 2)
  }
  if (frame === undefined) return Result.fail("The WEBP contains no image")
  const { height, width } = frame
  if (canvas !== undefined && (canvas.width !== width || canvas.height !== height)) {
    return Result.fail(
      `The WEBP announces ${canvas.width}*${canvas.height} pixels but has ${width}*${height}`
    )
  }
  return Result.succeed({
    format: "WEBP",
    width,
    height,
    alpha: frame.alpha || canvas?.alpha === true,
    end
  })
}
