import { Record } from "effect"
import {
  audioBytesMax,
  audioSecondsMax,
  audioSecondsMin,
  imageBytesMax,
  imageEditMaxSidePixelsMax,
  imageEditMaxSidePixelsMin,
  imageEditSidePixelsMax,
  imageEditSidePixelsMin,
  keyframeSidePixelsMax,
  keyframeSidePixelsMin,
  videoBytesMax
} from "../../domain/limits/Limits.ts"
import { sourceOf } from "../bodies/Bodies.ts"
import type { BodySource, Label } from "../bodies/Bodies.ts"
import { rulesOf } from "../jobs/JobModel.ts"
import type { Described } from "../jobs/JobModel.ts"
import type { AudioRules, ImageRules, MediaRules, VideoRules } from "./MediaRules.ts"

const image = (
  sideMin: number,
  sideMax: number | undefined,
  pngTransparency: ImageRules["pngTransparency"]
): ImageRules => ({
  kind: "image",
  formats: ["JPEG", "PNG", "BMP", "WEBP"],
  bytesMax: imageBytesMax,
  sideMin,
  ...(sideMax === undefined ? {} : { sideMax }),
  pngTransparency
})

const keyframe = image(keyframeSidePixelsMin, keyframeSidePixelsMax, "refused")

const customAudio: AudioRules = {
  kind: "audio",
  formats: ["WAV", "MP3"],
  bytesMax: audioBytesMax,
  secondsMin: audioSecondsMin,
  secondsMax: audioSecondsMax
}

const clip: VideoRules = { kind: "video", formats: ["MP4"], bytesMax: videoBytesMax }

/** Any size of at least one pixel. */
const anySize = image(1, undefined, "allowed")

const frame = image(keyframeSidePixelsMin, keyframeSidePixelsMax, "allowed")

/** The media fields of each body and their rules. The rules of a list field apply to each item. */
export const mediaFields: Record<Label, Readonly<Record<string, MediaRules>>> = {
  "text-to-video-spark": { audio_url: customAudio },
  "keyframe-to-video-plus": { image: keyframe, last_frame: keyframe },
  "image-edit": { images: image(imageEditSidePixelsMin, imageEditSidePixelsMax, "allowed") },
  "text-to-image-max": {},
  "image-edit-pro": { images: anySize },
  "image-edit-max": {
    images: image(imageEditMaxSidePixelsMin, imageEditMaxSidePixelsMax, "allowed")
  },
  "text-to-image-preview": {},
  "image-to-video-spark": { image: keyframe, audio_url: customAudio },
  "video-edit-plus": {
    images: frame,
    mask_image: frame,
    first_frame: frame,
    last_frame: frame,
    video_url: clip,
    mask_video_url: clip,
    first_clip_url: clip,
    last_clip_url: clip
  }
}

const ofLabels = new Map<string, Readonly<Record<string, MediaRules>>>(Object.entries(mediaFields))
const byDescription = new WeakMap<Described, Readonly<Record<string, MediaRules>>>()

/** The media fields of a body and their rules. */
export const mediaFieldsOf = (source: BodySource): Readonly<Record<string, MediaRules>> => {
  const { described, label } = sourceOf(source)
  if (described === undefined) return ofLabels.get(label) ?? {}
  const known = byDescription.get(described)
  if (known !== undefined) return known
  const rules = Record.map(described.media ?? {}, rulesOf)
  byDescription.set(described, rules)
  return rules
}
