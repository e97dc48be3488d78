import { latin1, u16le, u32be, u32le, u8 } from "./Bytes.ts"
import { frameAt } from "./Mp3.ts"

/** A part of an audio file. */
interface Part {
  readonly bytes: number
  /** The duration of the part. */
  readonly seconds?: number
  /** Set for raw samples without frames, whose duration is counted as they arrive. */
  readonly bytesPerSecond?: number
}

/** Reads the next part; `undefined` if more bytes are needed to identify it. */
type ReadPart = (bytes: Buffer, at: number) => Part | undefined

/** No header is longer than the first; no format is identified by fewer bytes than the second. */
const headerBytesMax = 512
const headerBytesMin = 12

const empty = Buffer.alloc(0)

/** Sample rates of AAC in ADTS frames, by index. */
const aacHertz = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350
]
const aacSamples = 1024

/** Bytes that are not a frame, up to a byte that may begin one. */
const strayBytes = (bytes: Buffer, at: number): Part => {
  const next = bytes.indexOf(0xff, at + 1)
  return { bytes: (next < 0 ? bytes.length : next) - at }
}

const readMp3Part: ReadPart = (bytes, at) => {
  if (at + 10 > bytes.length) return undefined
  if (latin1(bytes, at, 3) === "ID3") {
    const size = [6, 7, 8, 9].reduce((sum, it) => sum * 128 + (u8(bytes, at + it) & 0x7f), 0)
    return { bytes: 10 + size }
  }
  const frame = frameAt(bytes, at)
  return frame === undefined
    ? strayBytes(bytes, at)
    : { bytes: frame.length, seconds: frame.samples / frame.hertz }
}

const readAacPart: ReadPart = (bytes, at) => {
  if (at + 7 > bytes.length) return undefined
  const length =
    ((u8(bytes, at + 3) & 3) << 11) | (u8(bytes, at + 4) << 3) | (u8(bytes, at + 5) >> 5)
  const hertz = aacHertz[(u8(bytes, at + 2) >> 2) & 15]
  return isAac(bytes, at) && hertz !== undefined && length >= 7
    ? { bytes: length, seconds: aacSamples / hertz }
    : strayBytes(bytes, at)
}

const isAac = (bytes: Buffer, at: number): boolean =>
  u8(bytes, at) === 0xff && (u8(bytes, at + 1) & 0xf6) === 0xf0

/** Opus always counts at 48 kHz, Vorbis at its own rate. The pages of an Ogg file give the position that they reach. */
const makeReadOgg = (): ReadPart => {
  let rate: number | undefined
  let skipped = 0
  let reached = 0
  return (bytes, at) => {
    const segments = u8(bytes, at + 26)
    const body = at + 27 + segments
    if (at + 27 > bytes.length || body + 19 > bytes.length) return undefined
    if (latin1(bytes, at, 4) !== "OggS") return { bytes: Infinity }
    if (latin1(bytes, body, 8) === "OpusHead") {
      rate = 48_000
      skipped = u16le(bytes, body + 10)
    }
    if (latin1(bytes, body, 7) === "\x01vorbis") rate = u32le(bytes, body + 12)
    let length = 27 + segments
    for (let index = 0; index < segments; index += 1) length += u8(bytes, at + 27 + index)
    const samples = u32le(bytes, at + 6) + u32le(bytes, at + 10) * 2 ** 32
    // A page on which no packet ends has no position
    if (rate === undefined || rate === 0 || samples >= 2 ** 63) return { bytes: length }
    const now = Math.max(reached, samples - skipped)
    const seconds = (now - reached) / rate
    reached = now
    return { bytes: length, seconds }
  }
}

/** Whether the length is unknown, because a stream does not know its length when it begins. */
const isUnknown = (length: number): boolean => length === 0 || length >= 0xffff_ff00

const makeReadWav = (): ReadPart => {
  let bytesPerSecond = 0
  let samples = 0
  return (bytes, at) => {
    if (samples > 0) {
      const part = { bytes: samples, bytesPerSecond }
      samples = 0
      return part
    }
    if (at + 24 > bytes.length) return undefined
    const type = latin1(bytes, at, 4)
    if (type === "RIFF") return { bytes: 12 }
    const length = u32le(bytes, at + 4)
    if (type === "fmt ") bytesPerSecond = u32le(bytes, at + 16)
    if (type !== "data" || bytesPerSecond === 0) return { bytes: 8 + length + (length % 2) }
    samples = isUnknown(length) ? Infinity : length
    return { bytes: 8 }
  }
}

/** Only the header of a FLAC file gives its duration. */
const readFlac: ReadPart = (bytes, at) => {
  if (at + 26 > bytes.length) return undefined
  const hertz = u32be(bytes, at + 18) >>> 12
  const samples = (u8(bytes, at + 21) & 15) * 2 ** 32 + u32be(bytes, at + 22)
  return hertz > 0 && samples > 0
    ? { bytes: Infinity, seconds: samples / hertz }
    : { bytes: Infinity }
}

const samplesOf =
  (bytesPerSecond: number): ReadPart =>
  () => ({ bytes: Infinity, bytesPerSecond })

const nothing: ReadPart = () => ({ bytes: Infinity })

const readerOf = (bytes: Buffer): ReadPart => {
  const head = latin1(bytes, 0, 12)
  if (head.startsWith("RIFF") && head.endsWith("WAVE")) return makeReadWav()
  if (head.startsWith("OggS")) return makeReadOgg()
  if (head.startsWith("fLaC")) return readFlac
  if (isAac(bytes, 0)) return readAacPart
  return head.startsWith("ID3") || frameAt(bytes, 0) !== undefined ? readMp3Part : nothing
}

/**
 * Measures the duration of an audio file as its bytes pass: WAV, MP3, AAC in ADTS frames, Opus and Vorbis in Ogg, and
 * FLAC whose header gives it. Other formats have an unknown duration. Keeps a few hundred bytes in memory.
 */
export class SoundLength {
  #read: ReadPart | undefined
  #rest: Buffer = empty
  /** The bytes that are left of the current part. */
  #left = 0
  #bytesPerSecond: number | undefined
  #seconds: number | undefined

  /** `bytesPerSecond`: set for raw samples without a header. */
  constructor(bytesPerSecond?: number) {
    this.#read = bytesPerSecond === undefined ? undefined : samplesOf(bytesPerSecond)
  }

  /** Precise to the microsecond; `undefined` if the format does not show it. */
  get seconds(): number | undefined {
    return this.#seconds && Math.round(this.#seconds * 1e6) / 1e6
  }

  push(chunk: Buffer): void {
    let at = this.#pass(chunk, 0)
    if (at === chunk.length) return
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = empty
    while (at < bytes.length) {
      if (this.#read === undefined && bytes.length < headerBytesMin) break
      this.#read ??= readerOf(bytes)
      const part = this.#read(bytes, at)
      if (part === undefined) break
      this.#left = part.bytes
      this.#bytesPerSecond = part.bytesPerSecond
      if (part.seconds !== undefined) this.#add(part.seconds)
      at = this.#pass(bytes, at)
    }
    // No header is this long, so the rest cannot be identified and is skipped
    if (bytes.length - at < headerBytesMax) this.#rest = Buffer.from(bytes.subarray(at))
    else this.#left = Infinity
  }

  /** Skips what is left of a part. Returns where the next one begins. */
  #pass(bytes: Buffer, at: number): number {
    const passed = Math.min(this.#left, bytes.length - at)
    if (this.#bytesPerSecond !== undefined) this.#add(passed / this.#bytesPerSecond)
    this.#left -= passed
    return at + passed
  }

  #add(seconds: number): void {
    this.#seconds = (this.#seconds ?? 0) + seconds
  }
}
