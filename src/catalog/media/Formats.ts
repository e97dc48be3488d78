import { latin1, u8 } from "./Bytes.ts"

export type ImageFormat = "JPEG" | "PNG" | "BMP" | "WEBP"
export type AudioFormat = "WAV" | "MP3"
export type VideoFormat = "MP4"

/**
 * A format that is detected by its first bytes. The formats after the first three groups are only named in refusals.
 */
export type Format =
  | ImageFormat
  | AudioFormat
  | VideoFormat
  | "GIF"
  | "TIFF"
  | "HEIF or AVIF"
  | "PDF"
  | "ZIP"
  | "SVG, XML or HTML"
  | "Ogg"
  | "FLAC"
  | "GLB"

const magic: ReadonlyArray<readonly [prefix: string, format: Format]> = [
  ["\x89PNG\r\n\x1a\n", "PNG"],
  ["\xff\xd8\xff", "JPEG"],
  ["BM", "BMP"],
  ["ID3", "MP3"],
  ["GIF87a", "GIF"],
  ["GIF89a", "GIF"],
  ["II*\0", "TIFF"],
  ["MM\0*", "TIFF"],
  ["%PDF", "PDF"],
  ["PK\x03\x04", "ZIP"],
  ["OggS", "Ogg"],
  ["fLaC", "FLAC"],
  ["glTF", "GLB"],
  ["<", "SVG, XML or HTML"]
]

const still = new Set(["avif", "avis", "heic", "heix", "hevc", "mif1", "msf1"])

/** MPEG audio, layer III: eleven sync bits, then version and layer. */
const isMp3Frame = (bytes: Uint8Array): boolean =>
  u8(bytes, 0) === 0xff && (u8(bytes, 1) & 0xe6) === 0xe2

/** The format by magic bytes; the declared type is not trusted. */
export const sniff = (bytes: Uint8Array): Format | undefined => {
  const head = latin1(bytes, 0, 12)
  const known = magic.find(([prefix]) => head.startsWith(prefix))
  if (known !== undefined) return known[1]
  if (head.startsWith("RIFF") && head.endsWith("WEBP")) return "WEBP"
  if (head.startsWith("RIFF") && head.endsWith("WAVE")) return "WAV"
  if (head.slice(4, 8) === "ftyp") return still.has(head.slice(8, 12)) ? "HEIF or AVIF" : "MP4"
  return isMp3Frame(bytes) ? "MP3" : undefined
}

/** Media types of a format; the service writes the first one. */
export const mimesOf = {
  JPEG: ["image/jpeg", "image/jpg", "image/pjpeg"],
  PNG: ["image/png", "image/x-png"],
  BMP: ["image/bmp", "image/x-bmp", "image/x-ms-bmp"],
  WEBP: ["image/webp"],
  WAV: ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"],
  MP3: ["audio/mpeg", "audio/mp3", "audio/x-mp3", "audio/mpeg3"],
  MP4: ["video/mp4"]
} as const satisfies Record<ImageFormat | AudioFormat | VideoFormat, ReadonlyArray<string>>

/** The same, with formats that occur only in results. */
const allMimes = new Map<string, ReadonlyArray<string>>(
  Object.entries({
    ...mimesOf,
    GIF: ["image/gif"],
    Ogg: ["audio/ogg"],
    FLAC: ["audio/flac", "audio/x-flac"],
    GLB: ["model/gltf-binary"]
  })
)

/** The media type with which a result of this format is served; `undefined` if results never have this format. */
export const mimeOf = (format: Format): string | undefined => allMimes.get(format)?.[0]

/** Whether results of a known format are served with this media type. */
export const isServed = (mime: string): boolean => served.has(mime)

const served: ReadonlySet<string | undefined> = new Set(
  Array.from(allMimes.values(), ([mime]) => mime)
)

const extensions: ReadonlyMap<string, string> = new Map([
  ...Array.from(allMimes).flatMap(([format, mimes]) =>
    mimes.map((mime) => [mime, format === "JPEG" ? "jpg" : format.toLowerCase()] as const)
  ),
  // Not detected by their first bytes
  ["video/webm", "webm"],
  ["model/gltf+json", "gltf"],
  ["model/obj", "obj"],
  ["model/stl", "stl"],
  ["model/vnd.usdz+zip", "usdz"],
  ["application/zip", "zip"],
  ["application/json", "json"]
])

const mimesByExtension: ReadonlyMap<string, string> = new Map([
  ["jpeg", mimesOf.JPEG[0]],
  ...Array.from(extensions, ([mime, extension]) => [extension, mime] as const).toReversed()
])

/** The media type of a file, by its extension. */
export const mimeOfExtension = (extension: string): string | undefined =>
  mimesByExtension.get(extension.toLowerCase())

/** The extension of a file, by its media type. */
export const extensionOf = (mime: string): string => extensions.get(mime) ?? "bin"

/** The headers of a file, checked against its bytes. */
interface Header {
  /** Where the file's own content ends; phones and editors append other data. */
  readonly end: number
}

export interface AudioHeader extends Header {
  readonly format: AudioFormat
  /** Excludes the silence that the encoder reports to have added. */
  readonly seconds: number
}

export interface ImageHeader extends Header {
  readonly format: ImageFormat
  /** Pixels. */
  readonly width: number
  readonly height: number
  /** Whether there is an alpha channel or a transparent color, even if no pixel uses it. */
  readonly alpha: boolean
}
