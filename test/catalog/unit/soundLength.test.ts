import { assert, describe, it } from "vitest"
import { SoundLength } from "../../../src/catalog/media/SoundLength.ts"
import { hertz, mp3Of, samplesOf } from "../../../src/sandbox/media/Sound.ts"
import { wavOf } from "../../../src/sandbox/media/WavFile.ts"

/** How long a sound is, counted as it passes. docs/reference/wallet.md#speech-transcription-and-reranking */

const lengthOf = (bytes: Buffer, size: number, rate?: number): number | undefined => {
  const length = new SoundLength(rate)
  for (let at = 0; at < bytes.length; at += size) length.push(bytes.subarray(at, at + size))
  return length.seconds
}

const text = "a".repeat(30)
const samples = samplesOf(text)
const wav = wavOf(samples, hertz)

/** A page of Ogg, whose only packet ends at a position. */
const page = (position: number, body: Buffer) => {
  const head = Buffer.alloc(28)
  head.write("OggS", 0, "latin1")
  head.writeUInt32LE(position, 6)
  head.writeUInt8(1, 26)
  head.writeUInt8(body.length, 27)
  return Buffer.concat([head, body])
}
const opusHead = Buffer.concat([
  Buffer.from("OpusHead\x01\x01"),
  Buffer.from([0x38, 0x01]),
  Buffer.alloc(8)
])
const opus = Buffer.concat([
  page(0, opusHead),
  page(24_312, Buffer.alloc(200, 1)),
  page(96_312, Buffer.alloc(200, 2))
])

/** A frame of AAC: 24 kHz, 20 bytes. */
const aacFrame = Buffer.concat([
  Buffer.from([0xff, 0xf1, 0x58, 0x40, 0x02, 0x9f, 0xfc]),
  Buffer.alloc(13)
])

const flac = (total: number) => {
  const bytes = Buffer.alloc(2000)
  bytes.write("fLaC", 0, "latin1")
  bytes.writeUInt32BE((24_000 << 12) >>> 0, 18)
  bytes.writeUInt32BE(total, 22)
  return bytes
}

const cases: ReadonlyArray<readonly [string, Buffer, number]> = [
  ["WAV", wav, 2],
  ["MP3", mp3Of(text), 0.024 * (3 + Math.ceil(2 / 0.024))],
  [
    "MP3 behind a tag",
    Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\0\x14"), Buffer.alloc(20), mp3Of("a")]),
    0.288
  ],
  ["Opus in Ogg", opus, 2],
  ["AAC", Buffer.concat(Array.from({ length: 75 }, () => aacFrame)), (75 * 1024) / 24_000],
  ["FLAC", flac(48_000), 2]
]

describe("the length of a sound", () => {
  it.each(cases)("%s, in pieces of any size", (_, bytes, seconds) => {
    for (const size of [1, 7, 1000, bytes.length]) {
      assert.closeTo(lengthOf(bytes, size) ?? NaN, seconds, 1e-6, `pieces of ${size}`)
    }
  })

  it("is counted to the end for a WAV whose header does not state it", () => {
    for (const unknown of [0, 0xffff_ffff]) {
      const open = Buffer.from(wav)
      open.writeUInt32LE(unknown, 40)
      assert.closeTo(lengthOf(open, 1000) ?? NaN, 2, 1e-6)
    }
  })

  it("is counted by the rate for samples without a header", () => {
    assert.closeTo(lengthOf(samples, 999, 48_000) ?? NaN, 2, 1e-6)
  })

  it("is unknown for unknown formats, and bytes that are not a frame do not end the count", () => {
    assert.isUndefined(lengthOf(Buffer.from("\x1aE\xdf\xa3 webm".repeat(500), "latin1"), 100))
    assert.isUndefined(lengthOf(flac(0), 100))
    assert.isUndefined(lengthOf(Buffer.from("RIFF"), 1))
    const torn = Buffer.concat([mp3Of("a"), Buffer.alloc(5000, 7), mp3Of("a")])
    assert.closeTo(lengthOf(torn, 333) ?? NaN, 0.576, 1e-6)
  })
})
