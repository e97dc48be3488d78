import { Result } from "effect"
import { latin1, truncated, u32be, u8 } from "./Bytes.ts"
import type { ImageHeader } from "./Formats.ts"
import { makePartsCount, tooManyParts } from "./Slices.ts"

const signatureBytes = 8
const headerBytes = 13

/** CRC-32 of a small range, because only the header is checked. */
const crc32 = (bytes: Uint8Array, from: number, to: number): number => {
  let crc = 0xffff_ffff
  for (const byte of bytes.subarray(from, to)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb8_8320 : 0)
  }
  return (crc ^ 0xffff_ffff) >>> 0
}

/** Samples of a pixel and allowed bit depths, by color type. */
const colourTypes: Partial<Record<number, { samples: number; depths: ReadonlyArray<number> }>> = {
  0: { samples: 1, depths: [1, 2, 4, 8, 16] },
  2: { samples: 3, depths: [8, 16] },
  3: { samples: 1, depths: [1, 2, 4, 8] },
  4: { samples: 2, depths: [8, 16] },
  6: { samples: 4, depths: [8, 16] }
}

/** The highest compression ratio of Deflate. A file with fewer bytes cannot contain the announced image. */
const deflateRatioMax = 1032

interface PngHeader {
  readonly width: number
  readonly height: number
  readonly colourType: number
  /** A lower bound of the uncompressed size. */
  readonly rawBytes: number
}

const readHeader = (bytes: Uint8Array): Result.Result<PngHeader, string> => {
  const at = signatureBytes + 8
  if (bytes.length < at + headerBytes + 4) return Result.fail(truncated)
  const isHeader = latin1(bytes, signatureBytes + 4, 4) === "IHDR"
  if (!isHeader || u32be(bytes, signatureBytes) !== headerBytes) {
    return Result.fail("The PNG does not start with its header")
  }
  if (crc32(bytes, at - 4, at + headerBytes) !== u32be(bytes, at + headerBytes)) {
    return Result.fail("The checksum of the PNG header is wrong")
  }
  const [width, height, depth] = [u32be(bytes, at), u32be(bytes, at + 4), u8(bytes, at + 8)]
  const colourType = u8(bytes, at + 9)
  const colours = colourTypes[colourType]
  if (colours === undefined || !colours.depths.includes(depth) || u8(bytes, at + 12) > 1) {
    return Result.fail("The PNG header has an invalid combination of bit depth and color type")
  }
  const rawBytes = height * (1 + Math.ceil((width * colours.samples * depth) / 8))
  return Result.succeed({ width, height, colourType, rawBytes })
}

/** Reads a PNG chunk by chunk to its end; pixels are not decoded. */
export const readPng = (bytes: Uint8Array): Result.Result<ImageHeader, string> =>
  Result.flatMap(readHeader(bytes), ({ colourType, height, rawBytes, width }) => {
    let alpha = colourType === 4 || colourType === 6
    let dataBytes = 0
    const isFew = makePartsCount()
    for (let at = signatureBytes; ;) {
      if (!isFew()) return Result.fail(tooManyParts)
      if (at + 12 > bytes.length) return Result.fail(truncated)
      const length = u32be(bytes, at)
      const end = at + 12 + length
      if (end > bytes.length) return Result.fail(truncated)
      const type = latin1(bytes, at + 4, 4)
      if (type === "acTL" || type === "fcTL") return Result.fail("The PNG is animated")
      if (type === "tRNS") alpha = true
      if (type === "IDAT") dataBytes += length
      if (type === "IEND") {
        if (dataBytes * deflateRatioMax < rawBytes) {
          return Result.fail(
            `The PNG header announces ${width}*${height} pixels, more than its data can contain`
          )
        }
        return Result.succeed({ format: "PNG", width, height, alpha, end })
      }
      at = end
    }
  })
