import { Effect, Result } from "effect"
import { mimesOf } from "./Formats.ts"
import type { VideoFormat } from "./Formats.ts"
import type { VideoRules } from "./MediaRules.ts"
import { checkedFormat, MediaFault } from "./MediaRules.ts"

/** A video that complies with the rules of its field; the upstream inspects its content. */
export interface VideoInfo {
  readonly kind: "video"
  readonly format: VideoFormat
  readonly mime: string
  readonly content: Uint8Array
}

/** Checks a fetched video by format and size only. */
export const inspectVideo = (
  bytes: Uint8Array,
  rules: VideoRules
): Effect.Effect<VideoInfo, MediaFault> =>
  Effect.fromResult(
    checkedFormat(bytes, rules).pipe(
      Result.map((format): VideoInfo => ({
        kind: "video",
        format,
        mime: mimesOf[format][0],
        content: bytes
      })),
      Result.mapError((detail) => new MediaFault({ detail }))
    )
  )
