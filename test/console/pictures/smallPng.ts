import { decode } from "fast-png"
import { deflateSync } from "node:zlib"
import { pngChunk } from "../../support/media.ts"

const coloursMax = 256
const bits = 5

const u32be = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A color with fewer bits, used as a key. */
const rounded = (red: number, green: number, blue: number): number => {
  const cut = (it: number) => it >> (8 - bits)
  return (cut(red) << (2 * bits)) | (cut(green) << bits) | cut(blue)
}

/** The same picture in 256 colors: the most frequent ones, and for any other the nearest of these. */
export const smallPng = (bytes: Uint8Array): Uint8Array => {
  const { channels, data, height, width } = decode(bytes)
  const pixels = width * height
  const groups = new Map<number, { count: number; sums: [number, number, number] }>()
  const keys = new Uint16Array(pixels)
  for (let n = 0; n < pixels; n += 1) {
    const [red, green, blue] = [0, 1, 2].map((it) => data[n * channels + it] ?? 0)
    const key = rounded(red!, green!, blue!)
    keys[n] = key
    const group = groups.get(key) ?? { count: 0, sums: [0, 0, 0] }
    group.count += 1
    group.sums[0] += red!
    group.sums[1] += green!
    group.sums[2] += blue!
    groups.set(key, group)
  }
  const colours = [...groups]
    .map(([key, { count, sums }]) => ({ key, count, colour: sums.map((it) => it / count) }))
    .sort((one, other) => other.count - one.count || one.key - other.key)
  const kept = colours.slice(0, coloursMax)
  const distance = (one: ReadonlyArray<number>, other: ReadonlyArray<number>) =>
    one.reduce((sum, it, n) => sum + (it - other[n]!) ** 2, 0)
  const places = new Map(kept.map(({ key }, place) => [key, place]))
  for (const { colour, key } of colours.slice(coloursMax)) {
    let best = 0
    for (const [place, it] of kept.entries()) {
      if (distance(it.colour, colour) < distance(kept[best]!.colour, colour)) best = place
    }
    places.set(key, best)
  }
  const rows = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      rows[y * (width + 1) + 1 + x] = places.get(keys[y * width + x]!)!
    }
  }
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    pngChunk("IHDR", Buffer.concat([u32be(width), u32be(height), Buffer.from([8, 3, 0, 0, 0])])),
    pngChunk("PLTE", Buffer.from(kept.flatMap(({ colour }) => colour.map(Math.round)))),
    pngChunk("IDAT", deflateSync(rows, { level: 9 })),
    pngChunk("IEND")
  ])
}
