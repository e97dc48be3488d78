import { Schema } from "effect"
import { promptShortCodePointsMax } from "../../domain/limits/Limits.ts"
import {
  choice,
  image,
  LongText,
  NegativePrompt,
  prompt,
  promptExtend,
  SafetyFilter,
  Seed,
  ShortDuration
} from "./Fields.ts"

/** docs/reference/models.md#keyframe-to-video-plus */
export const KeyframeToVideoPlus = Schema.Struct({
  prompt: prompt(promptShortCodePointsMax, "Transition and motion"),
  image: image("First keyframe (JPEG, PNG without transparency, BMP or WEBP)"),
  last_frame: image("Last keyframe, same constraints"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  template: Schema.optionalKey(
    Schema.NullOr(LongText).annotate({ description: "Name of a video effect template" })
  ),
  resolution: choice(["720P"], "720P", "Only `720P`"),
  duration: Schema.optionalKey(ShortDuration),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "KeyframeToVideoPlus" })
