import { Result } from "effect"
import { sniff } from "./Sniff.ts"
import type { AudioFormat, Format, ImageFormat, VideoFormat } from "./Sniff.ts"

/** What an image field takes. Spec, image constraints. */
export interface ImageRules {
  readonly kind: "image"
  readonly formats: ReadonlyArray<ImageFormat>
  readonly bytesMax: number
  /** Pixels of width and of height, both included; no `sideMax`: no bound. */
  readonly sideMin: number
  readonly sideMax?: number
  /** `refused`: a PNG with an alpha channel (colour types 4 and 6) or a `tRNS` chunk breaks the rule. */
  readonly pngTransparency: "allowed" | "refused"
}

/** What an audio field takes. Spec, custom audio. */
export interface AudioRules {
  readonly kind: "audio"
  readonly formats: ReadonlyArray<AudioFormat>
  readonly bytesMax: number
  readonly secondsMin: number
  readonly secondsMax: number
}

/** What a video field takes: by URL only. */
export interface VideoRules {
  readonly kind: "video"
  readonly formats: ReadonlyArray<VideoFormat>
  readonly bytesMax: number
}

export type MediaRules = ImageRules | AudioRules | VideoRules

const inWords = (formats: ReadonlyArray<string>): string =>
  formats.length < 2
    ? formats.join("")
    : `${formats.slice(0, -1).join(", ")} or ${formats[formats.length - 1] ?? ""}`

/** `Expected at most 10 MB, got …`, or nothing. */
export const bytesFault = (bytes: number, bytesMax: number): string | undefined =>
  bytes <= bytesMax
    ? undefined
    : `Expected at most ${bytesMax / 1024 / 1024} MB (${bytesMax} bytes), got ${bytes} bytes`

/** The format by magic bytes, if the field takes it and the size is within bounds. */
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
