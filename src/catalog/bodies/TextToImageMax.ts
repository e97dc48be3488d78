import { Schema } from "effect"
import { promptShortCodePointsMax } from "../../domain/limits/Limits.ts"
import { choice, NegativePrompt, prompt, promptExtend, SafetyFilter, Seed } from "./Fields.ts"

export const textToImageMaxSizes = [
  "1664*928",
  "1472*1104",
  "1328*1328",
  "1104*1472",
  "928*1664"
] as const

/** docs/reference/models.md#text-to-image-max */
export const TextToImageMax = Schema.Struct({
  prompt: prompt(promptShortCodePointsMax, "What the image shows, in Chinese or English"),
  negative_prompt: Schema.optionalKey(
    Schema.NullOr(NegativePrompt).annotate({ description: "What the image should not show" })
  ),
  size: choice(textToImageMaxSizes, "1664*928", "`width*height`: 16:9, 4:3, 1:1, 3:4, 9:16"),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "TextToImageMax" })
