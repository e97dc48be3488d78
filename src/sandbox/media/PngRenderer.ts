import { Effect, Semaphore } from "effect"
import { encode } from "fast-png"
import { paint } from "./Scene.ts"
import type { Scene } from "./Scene.ts"
import type { Font } from "./Unifont.ts"

/**
 * A PNG of exactly the scene's size, with a palette and without a time stamp, so that equal scenes give equal bytes on
 * every runtime. Two pixels share a byte, because `fast-png` compresses byte by byte in plain JavaScript. Compressing
 * takes about 10 ms for 1664×928. Yields between pictures and renders one at a time, because many at once would run in
 * one turn of the event loop and block it.
 */
export const renderPng = (scene: Scene, font: Font) => oneAtATime.withPermit(render(scene, font))

const oneAtATime = Semaphore.makeUnsafe(1)

const render = Effect.fnUntraced(function* (scene: Scene, font: Font) {
  const { width, height, pixels, palette } = paint(scene, font)
  yield* Effect.yieldNow
  const png = encode(
    {
      width,
      height,
      data: twoInAByte(pixels, width),
      depth: 4,
      channels: 1,
      palette: palette.map(([red, green, blue]) => [red, green, blue])
    },
    { zlib: { level: 3 } }
  )
  yield* Effect.yieldNow
  return png
})

/** Rows of indices into a palette of at most 16 colors, two per byte. Each row begins in a new byte. */
const twoInAByte = (pixels: Uint8Array, width: number): Uint8Array => {
  const rows = pixels.length / width
  const bytesPerRow = Math.ceil(width / 2)
  const packed = new Uint8Array(bytesPerRow * rows)
  for (let row = 0; row < rows; row += 1) {
    let to = row * bytesPerRow
    const end = (row + 1) * width
    for (let at = row * width; at < end; at += 2) {
      const right = at + 1 < end ? (pixels[at + 1] ?? 0) : 0
      packed[to] = ((pixels[at] ?? 0) << 4) | right
      to += 1
    }
  }
  return packed
}
