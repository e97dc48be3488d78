import { Effect, Semaphore } from "effect"
import { encode } from "fast-png"
import { paint } from "./Scene.ts"
import type { Scene } from "./Scene.ts"
import type { Font } from "./Unifont.ts"

/**
 * A PNG of exactly the scene's size, with a palette and without a time stamp: equal scenes give equal
 * bytes on every runtime (`fast-png` compresses in plain JavaScript). Painting and compressing take
 * about 20 ms each for 1664×928. The event loop turns between them, and one picture is made at a time:
 * many at once would all be worked on in one turn, which answers nobody.
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
      data: pixels,
      depth: 8,
      channels: 1,
      palette: palette.map(([red, green, blue]) => [red, green, blue])
    },
    { zlib: { level: 3 } }
  )
  yield* Effect.yieldNow
  return png
})
