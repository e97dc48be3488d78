import { Buffer } from "node:buffer"
import { crc32, deflateSync } from "node:zlib"

/** Media files built byte by byte, as small as their formats allow, one for each rule. */

const u16be = (value: number) => Buffer.from([(value >> 8) & 0xff, value & 0xff])
const u16le = (value: number) => Buffer.from([value & 0xff, (value >> 8) & 0xff])
const u32be = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}
const u32le = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}
const u24le = (value: number) => u32le(value).subarray(0, 3)
export const concat = (...parts: ReadonlyArray<Uint8Array | string>): Uint8Array =>
  new Uint8Array(
    Buffer.concat(parts.map((it) => (typeof it === "string" ? Buffer.from(it, "latin1") : it)))
  )

export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

export const dataUri = (mime: string, bytes: Uint8Array): string =>
  `data:${mime};base64,${base64(bytes)}`

export const pngChunk = (type: string, data: Uint8Array = new Uint8Array()): Uint8Array => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data])
  return concat(u32be(data.length), body, u32be(crc32(body)))
}

export interface PngOptions {
  readonly width?: number
  readonly height?: number
  /** The PNG color type: 0 gray, 2 RGB, 3 palette, 4 gray with alpha, 6 RGBA. */
  readonly colourType?: 0 | 2 | 3 | 4 | 6
  /** Chunks between the header and the data. */
  readonly extra?: ReadonlyArray<Uint8Array>
  /** The height of the data, if it differs from the header. */
  readonly storedHeight?: number
}

const samples = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 } as const

/** A valid PNG of one color; 8 bits per sample. */
export const png = (options: PngOptions = {}): Uint8Array => {
  const { colourType = 2, extra = [], height = 400, width = 400 } = options
  const { storedHeight = height } = options
  const raw = Buffer.alloc(storedHeight * (1 + width * samples[colourType]))
  const header = concat(u32be(width), u32be(height), Buffer.from([8, colourType, 0, 0, 0]))
  return concat(
    "\x89PNG\r\n\x1a\n",
    pngChunk("IHDR", header),
    ...(colourType === 3 ? [pngChunk("PLTE", Buffer.from([1, 2, 3]))] : []),
    ...extra,
    pngChunk("IDAT", deflateSync(raw)),
    pngChunk("IEND")
  )
}

/** A PNG padded with an ignorable chunk to an exact size in bytes. */
export const pngOfBytes = (bytes: number, options: PngOptions = {}): Uint8Array => {
  const bare = png(options).length
  return png({ ...options, extra: [pngChunk("prVt", new Uint8Array(bytes - bare - 12))] })
}

const jpegSegment = (marker: number, data: Uint8Array): Uint8Array =>
  concat(Buffer.from([0xff, marker]), u16be(data.length + 2), data)

/** A frame header, which contains the size of the picture. */
export const jpegFrame = (marker: number, width: number, height: number): Uint8Array =>
  jpegSegment(
    marker,
    concat(Buffer.from([8]), u16be(height), u16be(width), Buffer.from([1, 1, 0x11, 0]))
  )

export interface JpegOptions {
  readonly width?: number
  readonly height?: number
  /** The frame marker: C0 for baseline, C2 for progressive. */
  readonly frame?: number
  /** The number of scans. A progressive JPEG has several. */
  readonly scans?: number
  /** Segments before the frame, such as an EXIF block with a thumbnail. */
  readonly extra?: ReadonlyArray<Uint8Array>
}

/** A gray JPEG: tables, one frame, and one scan that contains a stuffed byte and a restart marker. */
export const jpeg = (options: JpegOptions = {}): Uint8Array => {
  const { extra = [], frame = 0xc0, height = 400, scans = 1, width = 400 } = options
  const scan = concat(
    jpegSegment(0xda, Buffer.from([1, 1, 0, 0, 63, 0])),
    Buffer.from([0x12, 0xff, 0x00, 0x34, 0xff, 0xd0, 0x56])
  )
  return concat(
    Buffer.from([0xff, 0xd8]),
    jpegSegment(0xe0, concat("JFIF\0", Buffer.from([1, 1, 0, 0, 1, 0, 1, 0, 0]))),
    ...extra,
    jpegSegment(0xdb, concat(Buffer.from([0]), Buffer.alloc(64, 1))),
    jpegFrame(frame, width, height),
    jpegSegment(0xc4, concat(Buffer.from([0, 1]), Buffer.alloc(15), Buffer.from([0]))),
    ...Array.from({ length: scans }, () => scan),
    Buffer.from([0xff, 0xd9])
  )
}

/** A JPEG segment that contains another complete JPEG, as a thumbnail does. */
export const jpegThumbnail = (): Uint8Array =>
  jpegSegment(0xe1, concat("Exif\0\0", jpeg({ width: 16, height: 16 })))

export interface BmpOptions {
  readonly width?: number
  readonly height?: number
  readonly topDown?: boolean
  readonly depth?: 24 | 32
}

/** A valid BMP without compression. */
export const bmp = (options: BmpOptions = {}): Uint8Array => {
  const { depth = 24, height = 400, topDown = false, width = 400 } = options
  const pixels = Math.ceil((width * depth) / 32) * 4 * height
  return concat(
    "BM",
    u32le(54 + pixels),
    u32le(0),
    u32le(54),
    u32le(40),
    u32le(width),
    u32le(topDown ? -height : height),
    u16le(1),
    u16le(depth),
    u32le(0),
    u32le(pixels),
    new Uint8Array(16),
    new Uint8Array(pixels)
  )
}

const riff = (form: string, ...chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const body = concat(form, ...chunks)
  return concat("RIFF", u32le(body.length), body)
}

export const riffChunk = (type: string, data: Uint8Array): Uint8Array =>
  concat(type, u32le(data.length), data, new Uint8Array(data.length % 2))

const vp8 = (width: number, height: number) =>
  riffChunk(
    "VP8 ",
    concat(Buffer.from([0x10, 0, 0, 0x9d, 0x01, 0x2a]), u16le(width), u16le(height))
  )

const vp8l = (width: number, height: number, alpha: boolean) => {
  const bits = ((width - 1) | ((height - 1) << 14) | (alpha ? 1 << 28 : 0)) >>> 0
  return riffChunk("VP8L", concat(Buffer.from([0x2f]), u32le(bits), Buffer.from([0, 0, 0])))
}

const vp8x = (flags: number, width: number, height: number) =>
  riffChunk("VP8X", concat(Buffer.from([flags, 0, 0, 0]), u24le(width - 1), u24le(height - 1)))

export interface WebpOptions {
  readonly width?: number
  readonly height?: number
  readonly kind?: "lossy" | "lossless" | "extended" | "animated"
  readonly alpha?: boolean
  /** The canvas of the extended format, if it differs. */
  readonly canvas?: readonly [number, number]
}

export const webp = (options: WebpOptions = {}): Uint8Array => {
  const { alpha = false, height = 400, kind = "lossy", width = 400 } = options
  const [canvasWidth, canvasHeight] = options.canvas ?? [width, height]
  switch (kind) {
    case "lossy":
      return riff("WEBP", vp8(width, height))
    case "lossless":
      return riff("WEBP", vp8l(width, height, alpha))
    case "extended":
      return riff(
        "WEBP",
        vp8x(alpha ? 0x10 : 0, canvasWidth, canvasHeight),
        vp8l(width, height, alpha)
      )
    case "animated":
      return riff(
        "WEBP",
        vp8x(0x02, canvasWidth, canvasHeight),
        riffChunk("ANIM", new Uint8Array(6)),
        riffChunk("ANMF", new Uint8Array(16))
      )
  }
}

export interface WavOptions {
  readonly hertz?: number
  readonly channels?: number
  /** The bytes per second in the header, if that is wrong. */
  readonly bytesPerSecond?: number
  /** The length of the data chunk in the header, if that is wrong. */
  readonly announcedBytes?: number
  readonly coding?: number
  /** Chunks after the samples. */
  readonly tags?: ReadonlyArray<Uint8Array>
}

/** Silent 16-bit PCM. `seconds` is exact to a sample. */
export const wav = (seconds: number, options: WavOptions = {}): Uint8Array => {
  const { channels = 1, coding = 1, hertz = 8000, tags = [] } = options
  const block = channels * 2
  const data = new Uint8Array(Math.round(seconds * hertz) * block)
  const { announcedBytes = data.length, bytesPerSecond = hertz * block } = options
  return riff(
    "WAVE",
    riffChunk(
      "fmt ",
      concat(
        u16le(coding),
        u16le(channels),
        u32le(hertz),
        u32le(bytesPerSecond),
        u16le(block),
        u16le(16)
      )
    ),
    concat("data", u32le(announcedBytes), data),
    ...tags
  )
}

/** MPEG-1 Layer III, 32 kbit/s, 48 kHz, mono: 96 bytes and 24 ms per frame. */
export const mp3FrameSeconds = 1152 / 48_000

const mp3Frame = (data: Uint8Array = new Uint8Array()): Uint8Array =>
  concat(Buffer.from([0xff, 0xfb, 0x14, 0xc0]), data, new Uint8Array(92 - data.length))

export interface Mp3Options {
  /** The number of frames in the Info tag. `undefined`: no tag. */
  readonly announcedFrames?: number
  readonly id3v2?: boolean
  readonly id3v1?: boolean
}

export const mp3 = (frames: number, options: Mp3Options = {}): Uint8Array => {
  const { announcedFrames, id3v1 = false, id3v2 = false } = options
  const frame = mp3Frame()
  return concat(
    ...(id3v2 ? [concat("ID3", Buffer.from([4, 0, 0, 0, 0, 1, 0]), new Uint8Array(128))] : []),
    ...(announcedFrames === undefined
      ? []
      : [mp3Frame(concat(new Uint8Array(17), "Info", u32be(1), u32be(announcedFrames)))]),
    ...Array.from({ length: frames }, () => frame),
    ...(id3v1 ? [concat("TAG", new Uint8Array(125))] : [])
  )
}

/** An empty video, such as phones append to a photo. */
export const mp4 = (): Uint8Array =>
  concat(
    u32be(24),
    "ftypmp42",
    u32be(0),
    "mp42isom",
    u32be(16),
    "mdat",
    Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0xff, 0xd9, 0, 0])
  )

export const gif = (): Uint8Array => concat("GIF89a", u16le(400), u16le(400), new Uint8Array(20))
