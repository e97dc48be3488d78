import { Schema } from "effect"
import { promptLongCodePointsMax } from "../../domain/limits/Limits.ts"
import {
  audioUrl,
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

/** The body follows the upstream model. docs/reference/models.md#image-to-video-spark */
export const ImageToVideoSpark = Schema.Struct({
  prompt: prompt(promptLongCodePointsMax, "Motion and story"),
  image: image("First frame (JPEG, PNG without transparency, BMP or WEBP)"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  audio: nullableFlag("Automatic audio; `false` forces silent output"),
  audio_url: audioUrl(),
  resolution: choice(["480P", "720P", "1080P"], "720P", "Tier of the video; affects the cost"),
  duration: Schema.optionalKey(Duration),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "ImageToVideoSpark" })
