import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { decodeBody } from "../../../src/catalog/bodies/Decode.ts"
import { decodeBase64, decodedBytes } from "../../../src/catalog/media/Base64.ts"
import { acceptBody, mapMedia, placeholderOf } from "../../../src/catalog/media/Media.ts"
import { mediaFields } from "../../../src/catalog/media/MediaFields.ts"
import { inSlices, sliceBytes } from "../../../src/catalog/media/Slices.ts"
import { accept, faults, picture, pictureUrl } from "../../support/bodies.ts"
import { base64, dataUri, jpeg, png, wav } from "../../support/media.ts"

describe("acceptBody", () => {
  it.effect("moves inline media out of the body and keeps URLs in it", () =>
    Effect.gen(function* () {
      const { body, media, urls } = yield* accept("image-edit", {
        images: [pictureUrl, base64(jpeg()), dataUri("image/png", png())]
      })
      assert.deepStrictEqual("images" in body ? body.images : [], [
        pictureUrl,
        "artifact:0",
        "artifact:1"
      ])
      assert.deepStrictEqual(
        media.map(({ mime, pointer }) => [pointer, mime]),
        [
          ["#/images/1", "image/jpeg"],
          ["#/images/2", "image/png"]
        ]
      )
      assert.deepStrictEqual(media[0]?.bytes, jpeg())
      assert.deepStrictEqual(urls, [
        { pointer: "#/images/0", url: pictureUrl, rules: mediaFields["image-edit"]["images"]! }
      ])
    })
  )
  it.effect("moves audio too, and numbers media over all fields", () =>
    Effect.gen(function* () {
      const { body, media } = yield* accept("image-to-video-spark", {
        image: picture,
        audio_url: base64(wav(4))
      })
      assert.include(body, { image: "artifact:0", audio_url: "artifact:1" })
      assert.deepStrictEqual(
        media.map(({ info }) => info.format),
        ["PNG", "WAV"]
      )
    })
  )
  it.effect("a body with placeholders decodes again", () =>
    Effect.gen(function* () {
      const { body } = yield* accept("image-edit", { images: [picture] })
      assert.deepStrictEqual(yield* decodeBody("image-edit", body), body)
    })
  )
  it.effect("a client cannot send a placeholder", () =>
    Effect.map(faults("image-edit", { images: [placeholderOf(0)] }), (found) =>
      assert.deepStrictEqual(found, [
        {
          pointer: "#/images/0",
          detail: 'Expected a public URL, a data URI or valid Base64, got "artifact:0"'
        }
      ])
    )
  )
  it.effect("names precisely what is wrong with a medium", () =>
    Effect.gen(function* () {
      const of = (image: string) =>
        Effect.map(faults("image-edit", { images: [image] }), ([first]) => first?.detail)
      assert.strictEqual(
        yield* of(dataUri("image/jpeg", png())),
        'The data URI declares "image/jpeg", its bytes are PNG'
      )
      assert.strictEqual(
        yield* of("data:image/png,raw"),
        "Expected a data URI of the form data:<type>;base64,<data>"
      )
      assert.strictEqual(
        yield* of("data:image/png;base64,@@@@"),
        "The data URI does not contain valid Base64"
      )
      assert.strictEqual(
        yield* of(base64(png({ width: 100, height: 5001 }))),
        "Expected a width and a height of 384 to 5000 pixels each, got 100*5001"
      )
      assert.strictEqual(
        yield* of("A".repeat(14_000_000)),
        "Expected at most 10 MB (10485760 bytes), got 10500000 bytes"
      )
    })
  )
  it.effect("accepts data URIs with other names of the same type, in any case", () =>
    Effect.map(
      faults("image-edit", {
        images: [
          dataUri("image/jpg", jpeg()),
          dataUri("IMAGE/PNG", png()),
          dataUri("image/png;charset=utf-8", png())
        ]
      }),
      (found) => assert.deepStrictEqual(found, [])
    )
  )
  it.effect("null audio is not a medium", () =>
    Effect.gen(function* () {
      const { media, urls } = yield* accept("text-to-video-spark", { audio_url: null })
      assert.deepStrictEqual([media, urls], [[], []])
    })
  )
  it.effect("videos are accepted by URL only and are listed with their rules", () =>
    Effect.gen(function* () {
      const { urls } = yield* acceptBody("video-edit-plus", {
        function: "video_outpainting",
        prompt: "a",
        video_url: "https://example.com/a.mp4"
      })
      assert.deepStrictEqual(
        urls.map(({ pointer, rules }) => [pointer, rules.kind]),
        [["#/video_url", "video"]]
      )
    })
  )
})

describe("mapMedia", () => {
  it.effect("replaces each medium", () =>
    Effect.gen(function* () {
      const { body } = yield* accept("image-edit", { prompt: "artifact:0", images: [picture] })
      const mapped = yield* mapMedia("image-edit", body, (pointer, text) => `${text}@${pointer}`)
      assert.deepStrictEqual(mapped, {
        ...body,
        images: ["artifact:0@#/images/0"]
      })
    })
  )
})

describe("decodeBase64", () => {
  const decoded = (text: string) => Effect.runSync(inSlices(() => decodeBase64(text)))

  it("decodes text longer than a slice, and refuses padding and blanks at the bounds of slices", async () => {
    const bytes = Uint8Array.from({ length: 3 * sliceBytes }, (_, n) => (n * 7) % 251)
    const run = (text: string) => Effect.runPromise(inSlices(() => decodeBase64(text)))
    for (const cut of [0, 1, 2, 3, 4]) {
      const part = bytes.subarray(0, bytes.length - cut)
      assert.deepStrictEqual(await run(base64(part)), part)
    }
    const text = base64(bytes)
    for (const wrong of ["=", "\n", "-"]) {
      for (const at of [sliceBytes - 1, sliceBytes, 2 * sliceBytes - 1]) {
        assert.isUndefined(await run(`${text.slice(0, at)}${wrong}${text.slice(at + 1)}`))
      }
    }
  })

  it("decodes what was encoded, for any bytes", () =>
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = base64(bytes)
        assert.strictEqual(decodedBytes(text), bytes.length)
        assert.deepStrictEqual(decoded(text), bytes)
      })
    ))
  it("refuses blanks, the URL alphabet, missing padding and stray bits", () => {
    for (const text of [
      "QUI",
      "QUJD\n",
      "QU I=",
      "QUI-",
      "QU_D",
      "Q===",
      "QUJ=",
      "QR==",
      "=",
      "QQ=="
    ]) {
      const taken = decoded(text) !== undefined
      assert.strictEqual(taken, text === "QQ==", text)
    }
  })
})
