import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { inspectMedia } from "../../../src/catalog/media/Media.ts"
import { mediaFields } from "../../../src/catalog/media/MediaFields.ts"
import type { AudioRules, ImageRules } from "../../../src/catalog/media/MediaRules.ts"
import { cpuMillis } from "../../support/cpuTime.ts"
import {
  bmp,
  concat,
  gif,
  jpeg,
  jpegFrame,
  jpegThumbnail,
  mp3,
  mp3FrameSeconds,
  mp4,
  png,
  pngChunk,
  pngOfBytes,
  riffChunk,
  wav,
  webp
} from "../../support/media.ts"

const anyImage: ImageRules = {
  kind: "image",
  formats: ["JPEG", "PNG", "BMP", "WEBP"],
  bytesMax: 10 * 1024 * 1024,
  sideMin: 1,
  pngTransparency: "allowed"
}
const opaque: ImageRules = { ...anyImage, pngTransparency: "refused" }
const sound: AudioRules = {
  kind: "audio",
  formats: ["WAV", "MP3"],
  bytesMax: 15 * 1024 * 1024,
  secondsMin: 3,
  secondsMax: 30
}

/** The fault, or an empty text. */
const faultOf = (bytes: Uint8Array, rules: ImageRules | AudioRules = anyImage) =>
  inspectMedia(bytes, rules).pipe(
    Effect.match({ onFailure: ({ detail }) => detail, onSuccess: () => "" })
  )

const refuses = (
  files: ReadonlyArray<Uint8Array>,
  words: RegExp,
  rules?: ImageRules | AudioRules
) =>
  Effect.forEach(files, (file) =>
    Effect.map(faultOf(file, rules), (detail) => assert.match(detail, words))
  )

const takes = (files: ReadonlyArray<Uint8Array>, rules?: ImageRules | AudioRules) =>
  Effect.forEach(files, (file) =>
    Effect.map(faultOf(file, rules), (detail) => assert.strictEqual(detail, ""))
  )

/** A file with any of these tails is accepted, and its content is the file without the tail. */
const keepsOnly = (
  file: Uint8Array,
  tails: ReadonlyArray<Uint8Array>,
  rules: ImageRules | AudioRules = anyImage
) =>
  Effect.forEach(tails, (tail) =>
    Effect.map(inspectMedia(concat(file, tail), rules), ({ content }) =>
      assert.deepStrictEqual(content, file)
    )
  )

/** Each format once, with 400*400 pixels. */
const images = {
  png: png(),
  palette: png({ colourType: 3 }),
  jpeg: jpeg(),
  progressive: jpeg({ frame: 0xc2 }),
  bmp: bmp(),
  lossy: webp(),
  lossless: webp({ kind: "lossless" }),
  extended: webp({ kind: "extended" })
}

describe("inspectImage", () => {
  it.effect("reads format, width, height and bytes of each format", () =>
    Effect.gen(function* () {
      const size = { width: 401, height: 403 }
      const files = [
        ["PNG", "image/png", png(size)],
        ["JPEG", "image/jpeg", jpeg(size)],
        ["JPEG", "image/jpeg", jpeg({ ...size, extra: [jpegThumbnail()] })],
        ["BMP", "image/bmp", bmp(size)],
        ["BMP", "image/bmp", bmp({ ...size, topDown: true, depth: 32 })],
        ["WEBP", "image/webp", webp(size)],
        ["WEBP", "image/webp", webp({ ...size, kind: "lossless" })],
        ["WEBP", "image/webp", webp({ ...size, kind: "extended", alpha: true })]
      ] as const
      for (const [format, mime, bytes] of files) {
        const info = yield* inspectMedia(bytes, anyImage)
        assert.include(info, { ...size, format, mime, kind: "image" })
        assert.deepStrictEqual(info.content, bytes)
      }
    })
  )
  it.effect("refuses other formats by their first bytes, whatever type is declared", () =>
    Effect.gen(function* () {
      yield* refuses([gif()], /^Expected JPEG, PNG, BMP or WEBP by its first bytes, got GIF$/u)
      yield* refuses(
        [concat("%PDF-1.7"), concat("<svg>"), wav(3), mp3(10)],
        /by its first bytes, got/u
      )
      yield* refuses([concat("hello")], /got an unknown format/u)
      yield* refuses([new Uint8Array()], /empty/u)
    })
  )
  it.effect("refuses each file that is cut at any byte", () =>
    Effect.forEach(Object.values(images), (file) =>
      Effect.forEach([0.2, 0.5, 0.9, 1], (share) => {
        const cut = file.subarray(0, Math.ceil(file.length * share) - 1)
        return Effect.map(faultOf(cut), (detail) => assert.notStrictEqual(detail, ""))
      })
    )
  )
  it.effect("cuts off what follows the end of each format", () =>
    Effect.forEach(Object.values(images), (file) =>
      keepsOnly(file, [
        new Uint8Array(1),
        new Uint8Array(4),
        concat("PK\x03\x04 a zip"),
        concat("<script>"),
        gif(),
        file
      ])
    )
  )
  it.effect("cuts off what phones append to a JPEG, and leaves its thumbnail in place", () =>
    Effect.forEach(
      [
        jpeg(),
        jpeg({ extra: [jpegThumbnail()] }),
        jpeg({ frame: 0xc2, scans: 5 }),
        jpeg({ frame: 0xc2, scans: 3, extra: [jpegThumbnail(), jpegThumbnail()] })
      ],
      (photo) =>
        keepsOnly(photo, [
          // Google's motion photo
          mp4(),
          // Samsung's, and the table of a photo without motion
          concat(
            "\0\0\x30\x0a\x10\0\0\0MotionPhoto_Data",
            mp4(),
            "SEFH",
            new Uint8Array(20),
            "SEFT"
          ),
          concat("SEFH", new Uint8Array(20), "SEFT"),
          // Multi-picture format, with padding between the pictures
          concat(new Uint8Array(3), jpeg({ width: 16, height: 16 }), jpeg()),
          concat(jpeg().subarray(0, 50))
        ])
    )
  )
  it.effect("reads a BMP whose file size is given as 0", () => {
    const file = bmp()
    file.fill(0, 2, 6)
    return keepsOnly(file, [new Uint8Array(), new Uint8Array(5)])
  })
  it.effect("counts the bytes received, not the bytes kept, against the maximum size", () =>
    refuses(
      [concat(jpeg(), new Uint8Array(10 * 1024 * 1024))],
      /^Expected at most 10 MB .*, got 1048\d{4} bytes$/u
    )
  )
  it.effect("refuses animated files", () =>
    refuses(
      [
        webp({ kind: "animated" }),
        png({ extra: [pngChunk("acTL", new Uint8Array(8))] }),
        png({ extra: [pngChunk("fcTL", new Uint8Array(26))] })
      ],
      /is animated/u
    )
  )
  it.effect("refuses empty pictures", () =>
    refuses(
      [
        png({ width: 0 }),
        png({ height: 0 }),
        jpeg({ width: 0 }),
        jpeg({ height: 0 }),
        bmp({ width: 0 }),
        webp({ width: 0 })
      ],
      /is empty/u
    )
  )
  it.effect("refuses headers that do not match the data", () =>
    Effect.gen(function* () {
      yield* refuses([png({ width: 2000, height: 2000, storedHeight: 2 })], /more than its data/u)
      yield* refuses([webp({ kind: "extended", canvas: [500, 500] })], /announces 500\*500/u)
      const patched = png()
      patched[19] = 77
      yield* refuses([patched], /checksum/u)
      const tall = bmp()
      tall[24] = 77
      yield* refuses([tall], /cut off/u)
      yield* refuses([png({ extra: [] }).subarray(0, 33)], /cut off/u)
    })
  )
  it.effect("refuses a JPEG without a picture, with two sizes, or damaged", () =>
    Effect.gen(function* () {
      const twice = jpeg({ extra: [jpegFrame(0xc0, 10, 10)] })
      yield* refuses([concat("\xff\xd8\xff\xd9")], /no image/u)
      yield* refuses([twice], /declares its size twice/u)
      yield* refuses([concat("\xff\xd8\xff\xe0\0\0")], /damaged/u)
      yield* refuses([concat("\xff\xd8\xff\xe0\0\x02abc")], /damaged/u)
    })
  )
  it.effect("refuses an alpha channel or a transparent color if transparency is forbidden", () =>
    Effect.gen(function* () {
      const transparent = [
        png({ colourType: 4 }),
        png({ colourType: 6 }),
        png({ extra: [pngChunk("tRNS", new Uint8Array(6))] }),
        png({ colourType: 3, extra: [pngChunk("tRNS", new Uint8Array(1))] })
      ]
      yield* refuses(transparent, /without transparency/u, opaque)
      yield* takes(transparent)
      yield* takes(Object.values(images), opaque)
      yield* takes([webp({ kind: "lossless", alpha: true })], opaque)
    })
  )
  it.effect("bounds the sides and the bytes from below and above", () =>
    Effect.gen(function* () {
      const rules = { ...anyImage, sideMin: 360, sideMax: 2000 }
      yield* takes([webp({ width: 360, height: 2000 })], rules)
      yield* refuses(
        [webp({ width: 359 })],
        /^Expected .* of 360 to 2000 .*, got 359\*400$/u,
        rules
      )
      yield* refuses([webp({ height: 2001 })], /got 400\*2001/u, rules)
      yield* takes([pngOfBytes(10 * 1024 * 1024)])
      yield* refuses(
        [pngOfBytes(10 * 1024 * 1024 + 1)],
        /^Expected at most 10 MB \(10485760 bytes\), got 10485761 bytes$/u
      )
    })
  )
})

describe("inspectAudio", () => {
  it.effect("counts the seconds of WAV and MP3", () =>
    Effect.gen(function* () {
      assert.include(yield* inspectMedia(wav(3.5), sound), {
        kind: "audio",
        format: "WAV",
        mime: "audio/wav",
        seconds: 3.5
      })
      const info = yield* inspectMedia(mp3(500), sound)
      assert.include(info, { kind: "audio", format: "MP3", mime: "audio/mpeg" })
      assert.closeTo("seconds" in info ? info.seconds : 0, 500 * mp3FrameSeconds, 1e-9)
      yield* takes(
        [
          wav(30, { channels: 2, hertz: 48_000 }),
          mp3(500, { id3v1: true, id3v2: true }),
          mp3(500, { announcedFrames: 500 }),
          concat(mp3(500), new Uint8Array(300))
        ],
        sound
      )
    })
  )
  it.effect("accepts 3 to 30 seconds, and nothing shorter or longer", () =>
    Effect.gen(function* () {
      yield* takes([wav(3), wav(30), mp3(125), mp3(1250)], sound)
      yield* refuses([wav(2.99), wav(30.01)], /^Expected 3 to 30 seconds, got/u, sound)
      yield* refuses([mp3(124), mp3(1260)], /^Expected 3 to 30 seconds, got/u, sound)
    })
  )
  it.effect("refuses an MP3 of more than 30 seconds, whatever its encoder added", () =>
    Effect.gen(function* () {
      yield* refuses([mp3(1251), mp3(1252)], /got 30.0[25]/u, sound)
      yield* refuses([mp3(1253)], /got 30.07/u, sound)
    })
  )
  it.effect("ignores a length in the header that does not match the data", () =>
    Effect.gen(function* () {
      yield* refuses([wav(100, { bytesPerSecond: 100_000 })], /inconsistent/u, sound)
      yield* refuses([wav(3, { announcedBytes: 400_000 })], /cut off/u, sound)
      yield* refuses([mp3(200, { announcedFrames: 1000 })], /cut off/u, sound)
      yield* refuses([mp3(1000, { announcedFrames: 200 })], /announces 200 frames/u, sound)
    })
  )
  it.effect("accepts tags behind the sound, and cuts off what follows the end", () =>
    Effect.gen(function* () {
      const id3 = mp3(0, { id3v2: true })
      const list = riffChunk("LIST", concat("INFOISFT\x05\0\0\0Lavf\0\0"))
      const tags = [concat("PK\x03\x04"), new Uint8Array(4), list, riffChunk("id3 ", id3), id3]
      for (const file of [
        wav(5),
        wav(5, { tags: [list] }),
        wav(5, { tags: [riffChunk("id3 ", id3), list] }),
        wav(5, { tags: [new Uint8Array(1), list, new Uint8Array(1)] })
      ]) {
        yield* keepsOnly(file, [new Uint8Array(), ...tags], sound)
        assert.include(yield* inspectMedia(file, sound), { seconds: 5 })
      }
      const ape = concat("APETAGEX", new Uint8Array(120))
      const id3v1 = concat("TAG", new Uint8Array(125))
      yield* keepsOnly(
        mp3(300, { id3v2: true }),
        [...tags, ape, id3v1, concat(ape, id3v1), mp4()],
        sound
      )
    })
  )
  it.effect("refuses an MP3 that would be cut in the middle of its sound", () =>
    refuses(
      [concat(mp3(300), "MZ", mp3(300)), concat(mp3(300), new Uint8Array(70_000), mp3(300))],
      /interrupted/u,
      sound
    )
  )
  it.effect("refuses cut, empty and compressed files", () =>
    Effect.gen(function* () {
      yield* refuses([wav(5).subarray(0, 40_000), mp3(300).subarray(0, 20_050)], /cut off/u, sound)
      yield* refuses([wav(5, { coding: 0x55 })], /compressed/u, sound)
      yield* refuses([concat("ID3\x04\0\0\0\0\0\0nothing")], /no audio/u, sound)
      yield* refuses([png(), concat("OggS"), concat("fLaC")], /Expected WAV or MP3/u, sound)
      yield* refuses([concat("RIFF\x04\0\0\0WAVE")], /no audio/u, sound)
    })
  )
})

describe("any bytes", () => {
  const rules = [...Object.values(mediaFields).flatMap((it) => Object.values(it)), anyImage, sound]
  const seeds = [
    ...Object.values(images),
    wav(0.01),
    mp3(3, { announcedFrames: 3, id3v2: true }),
    riffChunk("RIFF", concat("WEBP"))
  ]
  /** A valid file with some bytes changed and its end cut off, or random bytes after magic bytes. */
  const damaged = fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(200), fc.integer({ min: 0, max: 255 })), { maxLength: 12 }),
      fc.option(fc.nat(2000)),
      fc.uint8Array({ maxLength: 64 })
    )
    .map(([seed, changes, cut, noise]) => {
      const bytes = concat(seed.subarray(0, cut ?? seed.length), noise)
      for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
      return bytes
    })

  it("are accepted or refused with a reason, quickly and without a defect", () =>
    fc.assert(
      fc.property(damaged, fc.constantFrom(...rules), (bytes, rule) => {
        const began = cpuMillis()
        const result = Effect.runSync(Effect.result(inspectMedia(bytes, rule)))
        assert.isBelow(cpuMillis() - began, 1000)
        if (result._tag === "Failure") {
          assert.isNotEmpty(result.failure.detail)
          assert.isBelow(result.failure.detail.length, 200)
        }
      }),
      { numRuns: 3000 }
    ))
})
