import { decode, encode } from "fast-png"

/** An input image as a data URI: an RGB gradient without transparency. */
export const picture = (width: number, height: number, tint: number): string => {
  const data = new Uint8Array(width * height * 3)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = (y * width + x) * 3
      data[at] = (x * 255) / width
      data[at + 1] = (y * 255) / height
      data[at + 2] = tint
    }
  }
  const png = encode({ width, height, data, channels: 3, depth: 8 })
  return `data:image/png;base64,${Buffer.from(png).toString("base64")}`
}

/** The format and size of a downloaded result, detected from its bytes. */
export interface Medium {
  readonly format: "PNG" | "MP4"
  readonly width: number
  readonly height: number
  /** Only present for a video. */
  readonly seconds?: number
}

const pngMagic = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Decodes a PNG, or reads the boxes of an MP4. `undefined` for other bytes. */
export const inspect = (bytes: Uint8Array): Medium | undefined => {
  const buffer = Buffer.from(bytes)
  if (buffer.subarray(0, 8).equals(pngMagic)) {
    const { height, width } = decode(bytes, { checkCrc: true })
    return { format: "PNG", width, height }
  }
  return buffer.toString("latin1", 4, 8) === "ftyp" ? inspectMp4(buffer) : undefined
}

const inspectMp4 = (file: Buffer): Medium | undefined => {
  const moov = boxes(file).get("moov")
  const media = boxes(file).get("mdat")
  const header = moov === undefined ? undefined : boxes(moov).get("mvhd")
  const track = moov === undefined ? undefined : boxes(moov).get("trak")
  const shape = track === undefined ? undefined : boxes(track).get("tkhd")
  if (header === undefined || shape === undefined || media === undefined || media.length === 0) {
    return undefined
  }
  // Version 0 has 32-bit times, version 1 64-bit ones: ISO 14496-12, 8.2.2.
  const wide = header[0] === 1
  const duration = wide ? Number(header.readBigUInt64BE(24)) : header.readUInt32BE(16)
  return {
    format: "MP4",
    width: shape.readUInt16BE(shape.length - 8),
    height: shape.readUInt16BE(shape.length - 4),
    seconds: duration / header.readUInt32BE(wide ? 20 : 12)
  }
}

/** The first box of each type, without its header. */
const boxes = (buffer: Buffer): ReadonlyMap<string, Buffer> => {
  const found = new Map<string, Buffer>()
  let at = 0
  while (at + 8 <= buffer.length) {
    const short = buffer.readUInt32BE(at)
    const wide = short === 1 && at + 16 <= buffer.length
    const size = wide
      ? Number(buffer.readBigUInt64BE(at + 8))
      : short === 0
        ? buffer.length - at
        : short
    if (size < 8 || at + size > buffer.length) break
    const type = buffer.toString("latin1", at + 4, at + 8)
    if (!found.has(type)) found.set(type, buffer.subarray(at + (wide ? 16 : 8), at + size))
    at += size
  }
  return found
}
