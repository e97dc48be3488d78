import { Result, Schema } from "effect"
import { sniff } from "./Formats.ts"
import type { AudioFormat, Format, ImageFormat, VideoFormat } from "./Formats.ts"

/** What an image field accepts. docs/reference/models.md#image-rules */
export interface ImageRules {
  readonly kind: "image"
  readonly formats: ReadonlyArray<ImageFormat>
  readonly bytesMax: number
  /** Pixels of width and height, inclusive. Without `sideMax` there is no upper bound. */
  readonly sideMin: number
  readonly sideMax?: number
  /**
   * `refused` refuses a PNG with an alpha channel (color types 4 and 6) or a `tRNS` chunk.
   * docs/reference/models.md#image-rules
   */
  readonly pngTransparency: "allowed" | "refused"
}

/** What an audio field accepts. docs/reference/models.md#audio-rules */
export interface AudioRules {
  readonly kind: "audio"
  readonly formats: ReadonlyArray<AudioFormat>
  readonly bytesMax: number
  readonly secondsMin: number
  readonly secondsMax: number
}

/** What a video field accepts. Videos are sent by URL only. */
export interface VideoRules {
  readonly kind: "video"
  readonly formats: ReadonlyArray<VideoFormat>
  readonly bytesMax: number
}

export type MediaRules = ImageRules | AudioRules | VideoRules

/** A medium breaks a rule of its field, or its bytes are not what they claim to be. */
export class MediaFault extends Schema.TaggedError<MediaFault>()("MediaFault", {
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

const inWords = (formats: ReadonlyArray<string>): string =>
  formats.length < 2
    ? formats.join("")
    : `${formats.slice(0, -1).join(", ")} or ${formats[formats.length - 1] ?? ""}`

export const bytesFault = (bytes: number, bytesMax: number): string | undefined =>
  bytes <= bytesMax
    ? undefined
    : `Expected at most ${bytesMax / 1024 / 1024} MB (${bytesMax} bytes), got ${bytes} bytes`

/** The format detected by magic bytes, if the field accepts it and the size is within bounds. */
export const checkedFormat = <F extends Format>(
  bytes: Uint8Array,
  rules: { readonly formats: ReadonlyArray<F>; readonly bytesMax: number }
): Result.Result<F, string> => {
  if (bytes.length === 0) return Result.fail("The file is empty")
  const tooLarge = bytesFault(bytes.length, rules.bytesMax)
  if (tooLarge !== undefined) return Result.fail(tooLarge)
  const found = sniff(bytes)
  const format = rules.formats.find((it) => it === found)
  return format === undefined
    ? Result.fail(
        `Expected ${inWords(rules.formats)} by its first bytes, got ${found ?? "an unknown format"}`
      )
    : Result.succeed(format)
}
