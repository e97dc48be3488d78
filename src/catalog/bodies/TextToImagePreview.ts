import { Schema } from "effect"
import { imageEditCountMax, promptLongCodePointsMax } from "../../domain/limits/Limits.ts"
import { imageCount, NegativePrompt, prompt, promptExtend, SafetyFilter, Seed } from "./Fields.ts"
import { AreaSize } from "./Size.ts"

/** The body follows the upstream model. docs/reference/models.md#text-to-image-preview */
export const TextToImagePreview = Schema.Struct({
  prompt: prompt(promptLongCodePointsMax, "What the image shows, in Chinese or English"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  size: AreaSize,
  n: imageCount(imageEditCountMax, imageEditCountMax),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "TextToImagePreview" })
