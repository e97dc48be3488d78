import { Schema } from "effect"
import { promptLongCodePointsMax } from "../../domain/limits/Limits.ts"
import {
  audioUrl,
  choice,
  Duration,
  NegativePrompt,
  nullableFlag,
  prompt,
  promptExtend,
  SafetyFilter,
  Seed
} from "./Fields.ts"
import { videoSizes } from "./Size.ts"

/** docs/reference/models.md#text-to-video-spark */
export const TextToVideoSpark = Schema.Struct({
  prompt: prompt(promptLongCodePointsMax, "What the video shows"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  audio: nullableFlag("Automatic audio; `false` forces silent output"),
  audio_url: audioUrl(". If shorter than the video the rest is silent, if longer it is cut"),
  size: choice(
    [...videoSizes["720P"], ...videoSizes["1080P"]],
    "1280*720",
    "`width*height`; the first five are the 720P tier, the others the 1080P tier"
  ),
  duration: Schema.optionalKey(Duration),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "TextToVideoSpark" })
