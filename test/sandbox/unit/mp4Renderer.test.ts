import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createFile, MP4BoxBuffer } from "mp4box"
import { createHash } from "node:crypto"
import { renderMp4 } from "../../../src/sandbox/media/Mp4Renderer.ts"
import type { Film } from "../../../src/sandbox/media/Mp4Renderer.ts"
import * as Unifont from "../../../src/sandbox/media/Unifont.ts"
import { scene } from "./support.ts"

const spark: Film = { seconds: 5, framesPerSecond: 24, hasSound: true }
const keyframe: Film = { seconds: 5, framesPerSecond: 30, hasSound: false }

const render = Effect.fnUntraced(function* (changes: Parameters<typeof scene>[0], film: Film) {
  return yield* renderMp4(scene(changes), film, yield* Unifont.load)
})

/** The file as mp4box reads it, which shares no code with the renderer. */
const read = (bytes: Uint8Array) => {
  const file = createFile()
  const ready = Promise.withResolvers<NonNullable<Parameters<typeof file.onReady & {}>[0]>>()
  file.onReady = ready.resolve
  file.onError = (module, message) => ready.reject(new Error(`${module}: ${message}`))
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0))
  file.flush()
  return Effect.promise(() => ready.promise).pipe(
    Effect.map((info) => ({ info, samples: (id: number) => file.getTrackSamplesInfo(id) }))
  )
}

describe("Mp4Renderer", () => {
  it.effect("makes a video of exactly the requested size, duration and frame rate", () =>
    Effect.gen(function* () {
      for (const [width, height, codec, film] of [
        [1280, 720, "avc1.42c01f", spark],
        [1280, 720, "avc1.42c01f", keyframe],
        [1088, 832, "avc1.42c01f", { ...spark, hasSound: false }],
        [1080, 1920, "avc1.42c028", { ...spark, seconds: 10 }]
      ] as const) {
        const { info, samples } = yield* read(yield* render({ width, height }, film))
        const [video] = info.videoTracks
        const frames = film.seconds * film.framesPerSecond
        assert.strictEqual(info.duration / info.timescale, film.seconds)
        assert.strictEqual(info.isFragmented, false)
        assert.strictEqual(info.isProgressive, true)
        assert.strictEqual(video!.codec, codec)
        assert.deepStrictEqual([video!.track_width, video!.track_height], [width, height])
        assert.deepStrictEqual([video!.video!.width, video!.video!.height], [width, height])
        assert.strictEqual(video!.nb_samples, frames)
        const all = samples(video!.id)
        assert.deepStrictEqual(
          all.map((it) => it.dts / it.timescale),
          Array.from({ length: frames }, (_, frame) => frame / film.framesPerSecond)
        )
        assert.deepStrictEqual(
          all.filter((it) => it.is_sync).map((it) => it.number),
          [0]
        )
      }
    })
  )

  it.effect("adds silent AAC as long as the video if sound is requested", () =>
    Effect.gen(function* () {
      const { info } = yield* read(yield* render({ width: 320, height: 240 }, spark))
      const [sound] = info.audioTracks
      assert.strictEqual(sound!.codec, "mp4a.40.2")
      assert.strictEqual(sound!.audio!.sample_rate, 48_000)
      assert.strictEqual(sound!.duration / sound!.timescale, 5)
      const silent = yield* read(yield* render({ width: 320, height: 240 }, keyframe))
      assert.lengthOf(silent.info.audioTracks, 0)
    })
  )

  it.effect("writes complete samples: unit lengths add up, without start codes inside", () =>
    Effect.gen(function* () {
      const bytes = yield* render({ width: 640, height: 360 }, spark)
      const { info, samples } = yield* read(bytes)
      const buffer = Buffer.from(bytes)
      const kinds = samples(info.videoTracks[0]!.id).map((sample) => {
        const data = buffer.subarray(sample.offset, sample.offset + sample.size)
        assert.strictEqual(data.readUInt32BE(0), data.length - 4)
        for (const code of ["000000", "000001", "000002"]) {
          assert.strictEqual(data.subarray(4).indexOf(code, 0, "hex"), -1)
        }
        return data.readUInt8(4) & 31
      })
      assert.deepStrictEqual(kinds, [5, ...Array.from({ length: 119 }, () => 1)])
    })
  )

  it.effect("makes the same bytes as when ffmpeg decoded every sample of them", () =>
    Effect.gen(function* () {
      const bytes = yield* render(
        { width: 98, height: 54, prompt: "Fox 狐", model: "m" },
        { ...spark, seconds: 1 }
      )
      assert.strictEqual(
        createHash("sha256").update(bytes).digest("hex"),
        "94a1873487be3cc1e68d3ed75c6f305773b2864025dc0e58902d382a0acd3282"
      )
    })
  )

  it.effect("makes small files that are byte for byte equal for equal scenes", () =>
    Effect.gen(function* () {
      const size = { width: 1280, height: 720 }
      const [first, again, other] = yield* Effect.all([
        render(size, spark),
        render(size, spark),
        render({ ...size, seed: 43 }, spark)
      ])
      assert.deepStrictEqual(first, again)
      assert.notDeepEqual(first, other)
      assert.isBelow(first.length, 300_000)
    })
  )
})
