import { Effect, Result } from "effect"
import { MediaFault } from "./Bytes.ts"
import type { VideoRules } from "./InspectionRules.ts"
import { checkedFormat } from "./InspectionRules.ts"
import { mimesOf } from "./Sniff.ts"
import type { VideoFormat } from "./Sniff.ts"

/** A video that keeps the rules of its field; the upstream looks into it. */
export interface VideoInfo {
  readonly kind: "video"
  readonly format: VideoFormat
  readonly mime: string
  readonly bytes: number
}

/** Checks a fetched video by format and size. Pure. */
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
        bytes: bytes.length
      })),
      Result.mapError((detail) => new MediaFault({ detail }))
    )
  )
