import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decode } from "fast-png"
import { renderPng } from "../../../src/sandbox/media/PngRenderer.ts"
import { paint } from "../../../src/sandbox/media/Scene.ts"
import * as Unifont from "../../../src/sandbox/media/Unifont.ts"
import { scene } from "./support.ts"

/** The palette indexes of the prompt's color and of the caption's. */
const textColor = 12
const captionColor = 13

const decoded = Effect.fnUntraced(function* (changes: Parameters<typeof scene>[0]) {
  const png = yield* renderPng(scene(changes), yield* Unifont.load)
  const { data, depth, height, width } = decode(png, { checkCrc: true })
  assert.strictEqual(depth, 4)
  return { width, height, pixels: pixelsOf(data, width, height) }
})

/** Two to a byte; each row begins with a separate byte. */
const pixelsOf = (
  data: ArrayLike<number>,
  width: number,
  height: number
): ReadonlyArray<number> => {
  const bytesPerRow = Math.ceil(width / 2)
  assert.strictEqual(data.length, bytesPerRow * height)
  return Array.from({ length: width * height }, (_, n) => {
    const column = n % width
    const byte = data[Math.floor(n / width) * bytesPerRow + (column >> 1)]!
    return column % 2 === 0 ? byte >> 4 : byte & 15
  })
}

const count = (pixels: ReadonlyArray<number>, color: number): number =>
  pixels.filter((it) => it === color).length

describe("PngRenderer", () => {
  it.effect("makes an image of exactly the requested size with the prompt and a caption", () =>
    Effect.gen(function* () {
      for (const [width, height] of [
        [1664, 928],
        [928, 1664],
        [1328, 1328],
        [100, 60]
      ] as const) {
        const image = yield* decoded({ width, height })
        assert.deepStrictEqual([image.width, image.height], [width, height])
        assert.isAbove(count(image.pixels, textColor), 100)
        assert.isAbove(new Set(image.pixels).size, 4)
        assert.isAtLeast(count(image.pixels, captionColor), width > 100 ? 500 : 0)
      }
    })
  )

  it.effect("encodes each painted pixel, even in rows of odd length", () =>
    Effect.gen(function* () {
      const font = yield* Unifont.load
      for (const width of [1, 2, 3, 127, 128]) {
        const { pixels } = yield* decoded({ width, height: 90 })
        assert.deepStrictEqual(pixels, [...paint(scene({ width, height: 90 }), font).pixels])
      }
    })
  )

  it.effect("draws the smallest image and the longest prompt", () =>
    Effect.gen(function* () {
      const dot = yield* decoded({ width: 1, height: 1 })
      assert.strictEqual(dot.width, 1)
      const full = yield* decoded({ prompt: "龍".repeat(2000), width: 384, height: 384 })
      assert.isAbove(count(full.pixels, textColor), 10_000)
    })
  )

  it.effect("makes files that are byte for byte equal only for equal scenes", () =>
    Effect.gen(function* () {
      const font = yield* Unifont.load
      const small = { width: 320, height: 200 }
      const png = (changes: Parameters<typeof scene>[0]) =>
        Effect.map(renderPng(scene({ ...small, ...changes }), font), (bytes) =>
          Buffer.from(bytes).toString("base64")
        )
      const original = yield* png({})
      assert.strictEqual(yield* png({}), original)
      const others = yield* Effect.all([
        png({ seed: 43 }),
        png({ prompt: "A blue fox" }),
        png({ index: 1, count: 2 }),
        png({ model: "image-edit" })
      ])
      assert.strictEqual(new Set([original, ...others]).size, 5)
    })
  )

  it.effect("draws Chinese characters with their own shapes, and unknown ones as boxes", () =>
    Effect.gen(function* () {
      const font = yield* Unifont.load
      const glyph = (text: string) => font.glyph(text.codePointAt(0) ?? 0)
      // 一 is one stroke: a single row across.
      assert.lengthOf(
        glyph("一").rows.filter((row) => row !== 0),
        1
      )
      assert.strictEqual(glyph("狐").advance, 16)
      assert.strictEqual(glyph("A").advance, 8)
      assert.notDeepEqual(glyph("狐").rows, glyph("猫").rows)
      assert.deepStrictEqual(glyph("😀"), Unifont.boxes.glyph(0x1f600))
    })
  )
})
