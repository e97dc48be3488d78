import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { acceptBody, inspectMedia } from "../../../src/catalog/media/Media.ts"
import type { AudioRules, ImageRules } from "../../../src/catalog/media/MediaRules.ts"
import { concat, jpeg, pngChunk, png, wav, webp } from "../../support/media.ts"

const mebi = 1024 * 1024
const image: ImageRules = {
  kind: "image",
  formats: ["JPEG", "PNG", "BMP", "WEBP"],
  bytesMax: 10 * mebi,
  sideMin: 1,
  pngTransparency: "allowed"
}
const sound: AudioRules = {
  kind: "audio",
  formats: ["WAV", "MP3"],
  bytesMax: 15 * mebi,
  secondsMin: 3,
  secondsMax: 30
}

/** The unit repeated as often as it fits into this many bytes. */
const repeated = (unit: Uint8Array | ReadonlyArray<number>, bytes: number): Uint8Array => {
  const one = Uint8Array.from(unit)
  const all = new Uint8Array(Math.floor(bytes / one.length) * one.length)
  all.set(one.subarray(0, all.length))
  for (let filled = one.length; filled < all.length; filled *= 2) {
    all.copyWithin(filled, 0, Math.min(filled, all.length - filled))
  }
  return all
}

const riff = (kind: string, chunks: Uint8Array): Uint8Array => {
  const file = concat("RIFF", new Uint8Array(4), kind, chunks)
  new DataView(file.buffer, file.byteOffset).setUint32(4, file.length - 8, true)
  return file
}

/** The chunks of a RIFF file. */
const chunksOf = (file: Uint8Array): Uint8Array => file.subarray(12)

const empty = concat("junk", new Uint8Array(4))
const large = 10 * mebi - 4096
const longer = 15 * mebi - 4096
const picture = jpeg()
const scan = picture.subarray(0, -2)
const id3 = concat("ID3", Uint8Array.of(4, 0, 0, 0, 0, 0, 0))
/** MPEG 2, layer III, 8 kbit/s at 24 kHz: the shortest frame. */
const frame = concat(Uint8Array.of(0xff, 0xf3, 0x14, 0xc0), new Uint8Array(20))

const hostile: Readonly<Record<string, readonly [() => Uint8Array, ImageRules | AudioRules]>> = {
  "a WAV of 1.9 million chunks": [
    () => riff("WAVE", concat(chunksOf(wav(3)), repeated(empty, longer - wav(3).length))),
    sound
  ],
  "an MP3 of 1.5 million empty tags": [() => repeated(id3, longer), sound],
  "an MP3 of 600,000 frames": [() => repeated(frame, longer), sound],
  "an MP3 whose sound begins after 15 MB of zeros": [
    () => concat(id3, new Uint8Array(longer - frame.length), frame),
    sound
  ],
  "an MP3 with 15 MB of padding": [
    () => concat(repeated(frame, 2400), new Uint8Array(longer - 2400)),
    sound
  ],
  "a JPEG of 2.5 million segments": [
    () => concat(Uint8Array.of(0xff, 0xd8), repeated([0xff, 0xe0, 0, 2], large)),
    image
  ],
  "a JPEG of fill bytes": [() => concat(Uint8Array.of(0xff, 0xd8), repeated([0xff], large)), image],
  "a JPEG whose picture is full of markers": [
    () => concat(scan, repeated([0xff, 0], large), Uint8Array.of(0xff, 0xd9)),
    image
  ],
  "a JPEG with 10 MB of padding": [() => concat(picture, new Uint8Array(large)), image],
  "a JPEG of many pictures": [() => repeated(picture, large), image],
  "an MP3 before 15 MB that look like frames": [
    () => concat(repeated(frame, 2400), Uint8Array.of(0), repeated(frame.subarray(0, 4), longer)),
    sound
  ],
  "a PNG of 870,000 chunks": [
    () => {
      const file = png()
      const head = file.subarray(0, 33)
      return concat(head, repeated(pngChunk("teSt"), large), file.subarray(33))
    },
    image
  ],
  "a WEBP of 1.3 million chunks": [
    () => riff("WEBP", concat(chunksOf(webp()), repeated(empty, large))),
    image
  ]
}

const turnMillisMax = 20

/**
 * The longest turn of the event loop in CPU milliseconds, so that other processes do not count. The best of five runs,
 * because the garbage collector and the compiler interfere; stops at the first run within the limit.
 */
const longestTurn = async (run: () => Promise<unknown>): Promise<number> => {
  let best = Infinity
  for (let round = 0; round < 5 && best >= turnMillisMax; round += 1) {
    let longest = 0
    let isOver = false
    let before = process.threadCpuUsage()
    const turn = () => {
      const { system, user } = process.threadCpuUsage(before)
      longest = Math.max(longest, (system + user) / 1000)
      before = process.threadCpuUsage()
      if (!isOver) setImmediate(turn)
    }
    await new Promise((resolve) => setImmediate(resolve))
    before = process.threadCpuUsage()
    setImmediate(turn)
    await run()
    isOver = true
    await new Promise((resolve) => setImmediate(resolve))
    best = Math.min(best, longest)
  }
  return best
}

describe("media inspection never holds the event loop for more than 20 ms", () => {
  for (const [what, [make, rules]] of Object.entries(hostile)) {
    it(what, async () => {
      const bytes = make()
      const millis = await longestTurn(() =>
        Effect.runPromise(Effect.result(inspectMedia(bytes, rules)))
      )
      assert.isBelow(millis, turnMillisMax)
    })
  }

  it("15 MB of Base64 audio, and 15 MB that are not Base64", async () => {
    const audio = Buffer.from(wav(29, { hertz: 192_000 })).toString("base64")
    const picture = Buffer.from(png()).toString("base64")
    // Parsed, like the text of a body
    const broken = String(JSON.parse(JSON.stringify(`${audio.slice(0, -8)}!!!!====`)))
    for (const text of [audio, broken]) {
      const body = { prompt: "x", image: picture, audio_url: text }
      const millis = await longestTurn(() =>
        Effect.runPromise(Effect.result(acceptBody("image-to-video-spark", body)))
      )
      assert.isBelow(millis, turnMillisMax)
    }
  })
})

describe("the number of chunks is bounded", () => {
  const faultOf = (bytes: Uint8Array, rules: ImageRules | AudioRules) =>
    Effect.runPromise(
      inspectMedia(bytes, rules).pipe(
        Effect.match({ onFailure: ({ detail }) => detail, onSuccess: () => "" })
      )
    )

  for (const [what, [make, rules]] of Object.entries(hostile)) {
    if (!/chunks|tags|segments|fill bytes/u.test(what)) continue
    it(`${what} is refused`, async () => {
      assert.match(await faultOf(make(), rules), /more than 10000 parts/u)
    })
  }

  it("the number that real files have is accepted", async () => {
    const file = png()
    const chunks = repeated(pngChunk("teSt"), 9000 * 12)
    assert.strictEqual(
      await faultOf(concat(file.subarray(0, 33), chunks, file.subarray(33)), image),
      ""
    )
  })
})
