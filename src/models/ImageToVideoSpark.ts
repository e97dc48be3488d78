import { Schema } from "effect"
import { promptLongCodePointsMax } from "../domain/Limits.ts"
import {
  audio,
  choice,
  Duration,
  image,
  NegativePrompt,
  nullableFlag,
  prompt,
  promptExtend,
  SafetyFilter,
  Seed
} from "./Fields.ts"

/** `image-to-video-spark`: the spec shows its result only, so the body follows the upstream (vendors.md A1). Result: `videos`. */
export const ImageToVideoSpark = Schema.Struct({
  prompt: prompt(promptLongCodePointsMax, "Motion and story"),
  image: image("First frame (JPEG, PNG without transparency, BMP or WEBP)"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  audio: nullableFlag(true, "Automatic audio; `false` forces silent output"),
  audio_url: Schema.optionalKey(
    Schema.NullOr(audio("Custom audio (WAV or MP3, 3 to 30 seconds, at most 15 MB)")).annotate({
      description:
        "Custom audio, overrides `audio`: WAV or MP3, 3 to 30 seconds, at most 15 MB, as a public " +
        "https URL, data URI or Base64"
    })
  ),
  resolution: choice(["480P", "720P", "1080P"], "720P", "Tier of the video; affects the cost"),
  duration: Schema.optionalKey(Duration),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "ImageToVideoSpark" })
export type ImageToVideoSpark = typeof ImageToVideoSpark.Type
