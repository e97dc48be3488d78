import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decode } from "fast-png"
import { renderPng } from "../../../src/sandbox/PngRenderer.ts"
import * as Unifont from "../../../src/sandbox/Unifont.ts"
import { scene } from "./support.ts"

/** The palette's place of the prompt's color, and of the caption's. */
const textColor = 12
const captionColor = 13

const decoded = Effect.fnUntraced(function* (changes: Parameters<typeof scene>[0]) {
  const png = yield* renderPng(scene(changes), yield* Unifont.load)
  return decode(png, { checkCrc: true })
})

const count = (pixels: ArrayLike<number>, color: number): number =>
  Array.from(pixels).filter((it) => it === color).length

describe("PngRenderer", () => {
  it.effect("an image has exactly the requested size, and shows the prompt and a caption", () =>
    Effect.gen(function* () {
      for (const [width, height] of [
        [1664, 928],
        [928, 1664],
        [1328, 1328],
        [100, 60]
      ] as const) {
        const image = yield* decoded({ width, height })
        assert.deepStrictEqual([image.width, image.height], [width, height])
        assert.isAbove(count(image.data, textColor), 100)
        assert.isAbove(new Set(image.data).size, 4)
        assert.isAtLeast(count(image.data, captionColor), width > 100 ? 500 : 0)
      }
    })
  )

  it.effect("the smallest image and the longest prompt are drawn too", () =>
    Effect.gen(function* () {
      const dot = yield* decoded({ width: 1, height: 1 })
      assert.strictEqual(dot.width, 1)
      const full = yield* decoded({ prompt: "龍".repeat(2000), width: 384, height: 384 })
      assert.isAbove(count(full.data, textColor), 10_000)
    })
  )

  it.effect("equal scenes are equal to the byte, others differ", () =>
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

  it.effect("Chinese characters have their own shapes, unknown ones are boxes", () =>
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
