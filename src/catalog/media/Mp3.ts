import { Result } from "effect"
import { latin1, truncated, u16be, u32be, u8 } from "./Bytes.ts"
import type { AudioHeader } from "./Formats.ts"
import { endOfZeros, makePartsCount, sliceBytes, sliceParts, tooManyParts } from "./Slices.ts"
import type { Sliced } from "./Slices.ts"

/** Bit rates of layer III in kilobits per second by index, for MPEG 1 and for MPEG 2 and 2.5. */
const kilobits1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const kilobits2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const hertz1 = [44_100, 48_000, 32_000]

interface Frame {
  /** Version and sample rate: the same in each frame of one file. */
  readonly stream: number
  readonly length: number
  readonly samples: number
  readonly hertz: number
  /** Bytes between the header and the audio data, where a Xing tag begins. */
  readonly sideBytes: number
}

/** The frame that starts here: MPEG 1, 2 or 2.5, layer III. */
export const frameAt = (bytes: Uint8Array, at: number): Frame | undefined => {
  const [second, third] = [u8(bytes, at + 1), u8(bytes, at + 2)]
  if (at + 4 > bytes.length || u8(bytes, at) !== 0xff || (second & 0xe6) !== 0xe2) return undefined
  const version = (second >> 3) & 3
  const isMpeg1 = version === 3
  const kilobits = (isMpeg1 ? kilobits1 : kilobits2)[third >> 4]
  const base = hertz1[(third >> 2) & 3]
  if (version === 1 || base === undefined || !kilobits) return undefined
  const hertz = isMpeg1 ? base : version === 2 ? base / 2 : base / 4
  const samples = isMpeg1 ? 1152 : 576
  const isMono = u8(bytes, at + 3) >> 6 === 3
  return {
    stream: (second & 0xfe) * 0x100 + (third & 0x0c),
    length: Math.floor(((samples / 8) * kilobits * 1000) / hertz) + ((third >> 1) & 1),
    samples,
    hertz,
    sideBytes: isMpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17
  }
}

/** The offset of the first frame, after any ID3v2 tags; `undefined` if there are too many tags. */
const startOfSound = function* (bytes: Uint8Array): Sliced<number | undefined> {
  const isFew = makePartsCount()
  let at = 0
  while (latin1(bytes, at, 3) === "ID3") {
    if (!isFew()) return undefined
    const size = [6, 7, 8, 9].reduce((sum, it) => sum * 128 + (u8(bytes, at + it) & 0x7f), 0)
    at += 10 + size + ((u8(bytes, at + 5) & 0x10) === 0 ? 0 : 10)
  }
  return yield* endOfZeros(bytes, at)
}

/** The number of consecutive frames that prove audio, because other bytes may look like a frame. */
const framesOfSound = 3

const isSound = (bytes: Uint8Array, start: number): boolean => {
  let at = start
  for (let frames = 0; frames < framesOfSound; frames += 1) {
    const frame = frameAt(bytes, at)
    if (frame === undefined) return false
    at += frame.length
  }
  return true
}

/** Whether audio continues after other bytes. If it does, cutting here would truncate the file in the middle. */
const hasSoundFrom = function* (bytes: Uint8Array, start: number): Sliced<boolean> {
  for (let from = start; from < bytes.length; from += sliceBytes) {
    if (from > start) yield
    const end = Math.min(from + sliceBytes, bytes.length)
    for (let at = from; at < end; at += 1) if (isSound(bytes, at)) return true
  }
  return false
}

interface Announced {
  readonly frames: number | undefined
  /** Samples of silence that the encoder added before and after the audio. */
  readonly silentSamples: number
}

/** The contents of a Xing, Info or VBRI tag in the first frame. A frame with a tag has no audio. */
const announcedBy = (bytes: Uint8Array, at: number, frame: Frame): Announced | undefined => {
  if (latin1(bytes, at + 36, 4) === "VBRI") {
    return { frames: u32be(bytes, at + 36 + 14), silentSamples: 0 }
  }
  const tag = at + 4 + frame.sideBytes
  if (!["Xing", "Info"].includes(latin1(bytes, tag, 4))) return undefined
  const flags = u32be(bytes, tag + 4)
  const delays = (flags & 0x0f) === 0x0f && tag + 144 <= at + frame.length ? tag + 141 : undefined
  return {
    frames: (flags & 1) === 1 ? u32be(bytes, tag + 8) : undefined,
    silentSamples:
      delays === undefined ? 0 : (u16be(bytes, delays) >> 4) + (u16be(bytes, delays + 1) & 0x0fff)
  }
}

const announcedFault = (announced: number | undefined, frames: number): string | undefined => {
  if (announced === undefined || Math.abs(announced - frames) <= 1) return undefined
  return announced > frames ? truncated : `The MP3 announces ${announced} frames but has ${frames}`
}

/** Counts the audio frame by frame, because the length in a tag is not trusted. Cuts off tags after the audio. */
export const readMp3 = function* (bytes: Uint8Array): Sliced<Result.Result<AudioHeader, string>> {
  const start = yield* startOfSound(bytes)
  if (start === undefined) return Result.fail(tooManyParts)
  const first = frameAt(bytes, start)
  if (first === undefined) return Result.fail("The MP3 contains no audio")
  const announced = announcedBy(bytes, start, first)
  let at = start + (announced === undefined ? 0 : first.length)
  let frames = 0
  for (let frame = frameAt(bytes, at); frame?.stream === first.stream; frame = frameAt(bytes, at)) {
    at += frame.length
    frames += 1
    if (frames % sliceParts === 0) yield
  }
  if (at > bytes.length) return Result.fail(truncated)
  if (yield* hasSoundFrom(bytes, at)) return Result.fail("The audio of the MP3 is interrupted")
  const mismatch = announcedFault(announced?.frames, frames)
  if (mismatch !== undefined) return Result.fail(mismatch)
  const samples = frames * first.samples - (announced?.silentSamples ?? 0)
  return Result.succeed({
    format: "MP3",
    seconds: Math.max(0, samples) / first.hertz,
    end: at
  })
}
