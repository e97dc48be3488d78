import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Label } from "../../src/catalog/bodies/Bodies.ts"
import { acceptBody } from "../../src/catalog/media/Media.ts"
import { accept, bodyWith, faults, picture, pictureUrl, pointers } from "../support/bodies.ts"
import { base64, bmp, dataUri, jpeg, mp3, png, pngOfBytes, wav, webp } from "../support/media.ts"

/** docs/reference/requirements.md#models: one test a rule, with the values on both sides of each bound. */

const taken = (label: Label, field: string, values: ReadonlyArray<unknown>) =>
  Effect.forEach(values, (value) =>
    Effect.map(faults(label, { [field]: value }), (found) =>
      assert.deepStrictEqual(found, [], `${field} = ${JSON.stringify(value)?.slice(0, 60)}`)
    )
  )

const refused = (label: Label, field: string, values: ReadonlyArray<unknown>, at = `#/${field}`) =>
  Effect.forEach(values, (value) =>
    Effect.map(pointers(label, { [field]: value }), (found) =>
      assert.deepStrictEqual(found, [at], `${field} = ${JSON.stringify(value)?.slice(0, 60)}`)
    )
  )

const absent = (label: Label, field: string, expected: unknown) =>
  Effect.map(accept(label, { [field]: undefined }), ({ body }) =>
    assert.strictEqual(Object.entries(body).find(([key]) => key === field)?.[1], expected)
  )

const detail = (label: Label, field: string, value: unknown, expected: string) =>
  Effect.map(faults(label, { [field]: value }), (found) =>
    assert.deepStrictEqual(found, [{ pointer: `#/${field}`, detail: expected }])
  )

/** Astral characters are one code point and two UTF-16 units each. */
const text = (codePoints: number) => "😀".repeat(codePoints)

const requiredPrompt = (label: Label, maximum: number) =>
  it.effect(`prompt: required, max ${maximum} characters`, () =>
    Effect.gen(function* () {
      yield* taken(label, "prompt", ["a", "中", text(maximum)])
      yield* refused(label, "prompt", [undefined, null, 1, "", "\ud800", "a\u0000"])
      yield* detail(
        label,
        "prompt",
        text(maximum + 1),
        `Expected at most ${maximum} characters, got ${maximum + 1}`
      )
    })
  )

const negativePrompt = (label: Label, nullable = false) =>
  it.effect(`negative_prompt: ${nullable ? "or null, " : ""}max 500 characters`, () =>
    Effect.gen(function* () {
      yield* taken(label, "negative_prompt", [
        undefined,
        "",
        text(500),
        ...(nullable ? [null] : [])
      ])
      yield* refused(label, "negative_prompt", [text(501), 1, ...(nullable ? [] : [null])])
      yield* absent(label, "negative_prompt", undefined)
    })
  )

const seed = (label: Label) =>
  it.effect("seed: integer, 0 to 2147483647", () =>
    Effect.gen(function* () {
      yield* taken(label, "seed", [undefined, 0, 2147483647])
      yield* refused(label, "seed", [-1, 2147483648, 1.5, "1", null, true, Infinity])
      yield* absent(label, "seed", undefined)
    })
  )

const promptExtend = (label: Label, byDefault: boolean) =>
  it.effect(`prompt_extend: boolean, default ${byDefault}`, () =>
    Effect.gen(function* () {
      yield* taken(label, "prompt_extend", [true, false])
      yield* refused(label, "prompt_extend", [null, "true", 1])
      yield* absent(label, "prompt_extend", byDefault)
    })
  )

const nullableFlag = (label: Label, field: string) =>
  it.effect(`${field}: boolean or null, default true`, () =>
    Effect.gen(function* () {
      yield* taken(label, field, [true, false, null])
      yield* refused(label, field, ["true", 1, {}])
      yield* absent(label, field, true)
      const { body } = yield* accept(label, { [field]: null })
      assert.isTrue(Object.entries(body).some(([key, value]) => key === field && value === null))
    })
  )

const choice = (label: Label, field: string, words: ReadonlyArray<string>, byDefault: string) =>
  it.effect(`${field}: ${words.join(", ")}; default ${byDefault}`, () =>
    Effect.gen(function* () {
      yield* taken(label, field, words)
      yield* refused(label, field, ["", "nonsense", null, 5, words[0]?.toLowerCase() + " "])
      yield* absent(label, field, byDefault)
    })
  )

const unknownFields = (label: Label) =>
  it.effect("refuses an unknown field by its name", () =>
    Effect.map(faults(label, { watermark: true, "a/b": 1 }), (found) =>
      assert.deepStrictEqual(found, [
        { pointer: "#/watermark", detail: "Unknown field" },
        { pointer: "#/a~1b", detail: "Unknown field" }
      ])
    )
  )

/** Every bound of an image field; `wrap` puts an image into the body. */
const imageBounds = (
  label: Label,
  field: string,
  at: string,
  [minimum, maximum]: readonly [number, number],
  wrap: (image: string) => unknown
) => {
  const take = (images: ReadonlyArray<string>) => taken(label, field, images.map(wrap))
  const refuse = (images: ReadonlyArray<string>) => refused(label, field, images.map(wrap), at)

  it.effect(`${field}: public URL or Base64 data`, () =>
    Effect.gen(function* () {
      yield* take([pictureUrl, "http://example.com/a.png", "HTTPS://example.com/a", picture])
      yield* take([dataUri("image/png", png())])
      yield* refuse(["", "ftp://example.com/a.png", "https://", "https://u:p@example.com/a.png"])
      yield* refuse(["https://exa mple.com/", "https://example.com/\ud800", "https://a.b:99999/"])
      yield* take([`https://example.com/${"a".repeat(4076)}`])
      yield* refuse([`https://example.com/${"a".repeat(4077)}`])
      yield* refuse(["data:image/png,abc", "data:image/png;base64,####", "not Base64", "QUJD"])
      yield* refuse([`${picture.slice(0, 80)}\n${picture.slice(80)}`, "artifact:0"])
    })
  )
  it.effect(`${field}: JPEG, PNG, BMP and WEBP by magic bytes`, () =>
    take([png(), jpeg(), bmp(), webp(), webp({ kind: "lossless" })].map(base64))
  )
  it.effect(`${field}: width and height ${minimum} to ${maximum} pixels`, () =>
    Effect.gen(function* () {
      const sizes = (pairs: ReadonlyArray<readonly [number, number]>) =>
        pairs.map(([width, height]) => base64(webp({ width, height })))
      yield* take(
        sizes([
          [minimum, minimum],
          [maximum, maximum],
          [minimum, maximum]
        ])
      )
      yield* refuse(
        sizes([
          [minimum - 1, minimum],
          [minimum, minimum - 1]
        ])
      )
      yield* refuse(
        sizes([
          [maximum + 1, maximum],
          [maximum, maximum + 1]
        ])
      )
    })
  )
  it.effect(`${field}: at most 10 MB`, () =>
    Effect.gen(function* () {
      yield* take([base64(pngOfBytes(10 * 1024 * 1024))])
      yield* refuse([base64(pngOfBytes(10 * 1024 * 1024 + 1))])
    })
  )
}

const pngTransparency = (
  label: Label,
  field: string,
  at: string,
  allowed: boolean,
  wrap: (image: string) => unknown
) =>
  it.effect(`${field}: PNG transparency is ${allowed ? "allowed" : "refused"}`, () =>
    (allowed ? taken : refused)(
      label,
      field,
      [png({ colourType: 6 }), png({ colourType: 4 })].map((it) => wrap(base64(it))),
      at
    )
  )

describe("text-to-video-spark", () => {
  const label = "text-to-video-spark"
  requiredPrompt(label, 2000)
  negativePrompt(label)
  nullableFlag(label, "audio")
  it.effect("audio_url: URI or null, https URL or Base64", () =>
    Effect.gen(function* () {
      yield* taken(label, "audio_url", [undefined, null, "https://example.com/a.mp3"])
      yield* taken(label, "audio_url", [base64(wav(5)), dataUri("audio/mpeg", mp3(200))])
      yield* refused(label, "audio_url", ["http://example.com/a.mp3", "", 1, picture])
      yield* absent(label, "audio_url", undefined)
    })
  )
  it.effect("audio_url: WAV or MP3, 3 to 30 seconds", () =>
    Effect.gen(function* () {
      yield* taken(label, "audio_url", [wav(3), wav(30), mp3(125), mp3(1250)].map(base64))
      yield* refused(label, "audio_url", [wav(2.999), wav(30.001)].map(base64))
      yield* refused(label, "audio_url", [mp3(124), mp3(1253)].map(base64))
    })
  )
  it.effect("audio_url: at most 15 MB", () =>
    Effect.gen(function* () {
      const seconds = 15
      const hertz = (15 * 1024 * 1024 - 44) / 2 / 14
      const options = { hertz: Math.floor(hertz), channels: 1 }
      const largest = wav(14, options)
      assert.isAtMost(largest.length, 15 * 1024 * 1024)
      assert.isAbove(largest.length, 15 * 1024 * 1024 - 100)
      yield* taken(label, "audio_url", [base64(largest)])
      yield* refused(label, "audio_url", [base64(wav(seconds, options))])
    })
  )
  choice(
    label,
    "size",
    [
      "1280*720",
      "720*1280",
      "960*960",
      "1088*832",
      "832*1088",
      "1920*1080",
      "1080*1920",
      "1440*1440",
      "1632*1248",
      "1248*1632"
    ],
    "1280*720"
  )
  it.effect("duration: 5 or 10, no default", () =>
    Effect.gen(function* () {
      yield* taken(label, "duration", [undefined, 5, 10])
      yield* refused(label, "duration", [4, 6, 9, 11, "5", null, 5.5])
      yield* absent(label, "duration", undefined)
    })
  )
  promptExtend(label, true)
  seed(label)
  nullableFlag(label, "safety_filter")
  unknownFields(label)
})

describe("keyframe-to-video-plus", () => {
  const label = "keyframe-to-video-plus"
  requiredPrompt(label, 800)
  for (const field of ["image", "last_frame"]) {
    it.effect(`${field}: required`, () => refused(label, field, [undefined, null, 1, [pictureUrl]]))
    imageBounds(label, field, `#/${field}`, [360, 2000], (it) => it)
    pngTransparency(label, field, `#/${field}`, false, (it) => it)
  }
  negativePrompt(label)
  it.effect("template: string or null", () =>
    Effect.gen(function* () {
      yield* taken(label, "template", [undefined, null, "flying", text(100_000)])
      yield* refused(label, "template", [1, "\udc00", text(100_001)])
    })
  )
  choice(label, "resolution", ["720P"], "720P")
  it.effect("duration: only 5", () =>
    Effect.gen(function* () {
      yield* taken(label, "duration", [undefined, 5])
      yield* refused(label, "duration", [4, 10, "5", null])
    })
  )
  promptExtend(label, true)
  seed(label)
  nullableFlag(label, "safety_filter")
  unknownFields(label)
})

describe("image-edit", () => {
  const label = "image-edit"
  const many = (count: number) => Array.from({ length: count }, () => pictureUrl)
  requiredPrompt(label, 2000)
  it.effect("images: required, 1 to 3", () =>
    Effect.gen(function* () {
      yield* taken(label, "images", [many(1), many(3)])
      yield* refused(label, "images", [undefined, null, pictureUrl, [], many(4)])
      yield* refused(label, "images", [[pictureUrl, 1]], "#/images/1")
    })
  )
  imageBounds(label, "images", "#/images/0", [384, 5000], (it) => [it])
  pngTransparency(label, "images", "#/images/0", true, (it) => [it])
  negativePrompt(label)
  it.effect("size: width*height or null, default 1280*1280", () =>
    Effect.gen(function* () {
      yield* taken(label, "size", [null, "1280*1280"])
      yield* refused(label, "size", ["1280x1280", "1280", "*", "01280*1280", "1e3*1e3", 5, ""])
      yield* absent(label, "size", "1280*1280")
    })
  )
  it.effect("size: total pixels between 768*768 and 1440*1440", () =>
    Effect.gen(function* () {
      yield* taken(label, "size", ["768*768", "1440*1440", "512*1152"])
      yield* refused(label, "size", ["767*768", "768*767", "1440*1441", "1441*1440"])
    })
  )
  it.effect("size: aspect ratio between 1:4 and 4:1", () =>
    Effect.gen(function* () {
      yield* taken(label, "size", ["500*2000", "2000*500"])
      yield* refused(label, "size", ["500*2001", "2001*500"])
    })
  )
  it.effect("n: integer, 1 to 4, default 4", () =>
    Effect.gen(function* () {
      yield* taken(label, "n", [1, 4])
      yield* refused(label, "n", [0, 5, 1.5, "1", null])
      yield* absent(label, "n", 4)
    })
  )
  seed(label)
  promptExtend(label, false)
  nullableFlag(label, "safety_filter")
  unknownFields(label)
})

describe("text-to-image-max", () => {
  const label = "text-to-image-max"
  requiredPrompt(label, 800)
  negativePrompt(label, true)
  choice(label, "size", ["1664*928", "1472*1104", "1328*1328", "1104*1472", "928*1664"], "1664*928")
  promptExtend(label, true)
  seed(label)
  nullableFlag(label, "safety_filter")
  unknownFields(label)
})

describe("image-edit-pro", () => {
  const label = "image-edit-pro"
  const many = (count: number) => Array.from({ length: count }, () => pictureUrl)
  // ADR 0110: texts without a documented length have one
  requiredPrompt(label, 100_000)
  it.effect("images: required, 1 to 10", () =>
    Effect.gen(function* () {
      yield* taken(label, "images", [many(1), many(10)])
      yield* refused(label, "images", [undefined, null, pictureUrl, [], many(11), many(14)])
    })
  )
  it.effect("images: URL, data URI or Base64, at most 10 MB", () =>
    Effect.gen(function* () {
      const whole = pngOfBytes(10 * 1024 * 1024)
      const over = pngOfBytes(10 * 1024 * 1024 + 1)
      yield* taken(label, "images", [[pictureUrl, picture, dataUri("image/jpeg", jpeg())]])
      yield* taken(label, "images", [[dataUri("image/png", whole)], [base64(png({ width: 1 }))]])
      yield* refused(label, "images", [[dataUri("image/png", over)]], "#/images/0")
      yield* refused(label, "images", [[dataUri("image/jpeg", png())]], "#/images/0")
    })
  )
  choice(
    label,
    "aspect_ratio",
    ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"],
    "1:1"
  )
  it.effect("resolution: 1K, 2K; default 2K", () =>
    Effect.gen(function* () {
      yield* taken(label, "resolution", ["1K", "2K"])
      yield* refused(label, "resolution", ["4K", "1k", null, 2])
      yield* absent(label, "resolution", "2K")
    })
  )
  it.effect("takes no seed, size or negative_prompt", () =>
    Effect.map(pointers(label, { seed: 1, size: "1*1", negative_prompt: "a" }), (found) =>
      assert.sameMembers([...found], ["#/seed", "#/size", "#/negative_prompt"])
    )
  )
  unknownFields(label)
})

describe("the models whose bodies follow their upstream", () => {
  it.effect("image-edit-max: 1 to 3 images, n 1 to 6, sides of size 512 to 2048", () =>
    Effect.gen(function* () {
      const label = "image-edit-max"
      yield* taken(label, "n", [1, 6])
      yield* refused(label, "n", [0, 7])
      yield* absent(label, "n", 1)
      yield* taken(label, "size", ["512*2048", "2048*512", null, undefined])
      yield* refused(label, "size", ["511*512", "2048*2049"])
      yield* refused(label, "images", [[], [1, 2, 3, 4].map(() => pictureUrl)])
    })
  )
  it.effect("text-to-image-preview: n 1 to 4, size in bounds", () =>
    Effect.gen(function* () {
      const label = "text-to-image-preview"
      yield* taken(label, "n", [1, 4])
      yield* refused(label, "n", [0, 5])
      yield* refused(label, "size", ["767*768", "500*2001"])
      yield* absent(label, "size", "1280*1280")
    })
  )
  it.effect("image-to-video-spark: resolution 480P, 720P or 1080P, keyframe rules", () =>
    Effect.gen(function* () {
      const label = "image-to-video-spark"
      yield* taken(label, "resolution", ["480P", "720P", "1080P"])
      yield* refused(label, "resolution", ["360P"])
      yield* refused(label, "image", [base64(png({ width: 359 })), base64(png({ colourType: 6 }))])
    })
  )
  it.effect("video-edit-plus: each function requires its own fields", () =>
    Effect.gen(function* () {
      const label = "video-edit-plus"
      const url = "https://example.com/a.mp4"
      const of = (fields: Record<string, unknown>) =>
        pointers(label, { images: undefined, ...fields })
      assert.deepStrictEqual(yield* of({}), ["#/images"])
      assert.deepStrictEqual(yield* of({ function: "video_repainting" }), [
        "#/video_url",
        "#/control_condition"
      ])
      assert.deepStrictEqual(yield* of({ function: "video_edit", video_url: url }), [
        "#/mask_image"
      ])
      assert.deepStrictEqual(yield* of({ function: "video_extension" }), ["#/first_frame"])
      assert.deepStrictEqual(yield* of({ function: "video_extension", last_clip_url: url }), [])
      assert.deepStrictEqual(yield* of({ function: "video_outpainting", video_url: url }), [])
      yield* refused(label, "video_url", ["http://example.com/a.mp4", "AAAA", ""])
      yield* refused(label, "obj_or_bg", [["obj", "bg"]])
    })
  )
})

describe("all models", () => {
  it.effect("list all faults of a body, in fields and in media", () =>
    Effect.map(
      pointers("image-edit", {
        prompt: undefined,
        images: [pictureUrl, "QUJD", base64(png({ width: 383 }))],
        n: 9,
        extra: 1
      }),
      (found) =>
        assert.sameMembers([...found], ["#/prompt", "#/images/1", "#/images/2", "#/n", "#/extra"])
    )
  )
  it.effect("refuse a body that is not an object as a whole", () =>
    Effect.gen(function* () {
      for (const input of [null, [], "a", 1, true, undefined]) {
        const error = yield* Effect.flip(acceptBody("image-edit", input))
        assert.deepStrictEqual(
          error.errors.map(({ pointer }) => pointer),
          ["#"]
        )
      }
    })
  )
  it.effect("accept their smallest body", () =>
    Effect.forEach(
      [
        "text-to-video-spark",
        "keyframe-to-video-plus",
        "image-edit",
        "text-to-image-max",
        "image-edit-pro",
        "image-edit-max",
        "text-to-image-preview",
        "image-to-video-spark",
        "video-edit-plus"
      ] as const,
      (label) =>
        Effect.map(faults(label), (found) =>
          assert.deepStrictEqual(found, [], JSON.stringify(bodyWith(label, {})))
        )
    )
  )
})
