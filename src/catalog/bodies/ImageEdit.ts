import { Schema } from "effect"
import {
  imageEditCountMax,
  imageEditImagesMax,
  promptLongCodePointsMax
} from "../../domain/limits/Limits.ts"
import {
  imageCount,
  images,
  NegativePrompt,
  prompt,
  promptExtend,
  SafetyFilter,
  Seed
} from "./Fields.ts"
import { AreaSize } from "./Size.ts"

/** docs/reference/models.md#image-edit */
export const ImageEdit = Schema.Struct({
  prompt: prompt(promptLongCodePointsMax, "What to do with the pictures"),
  images: images(imageEditImagesMax, "Reference pictures (JPEG, PNG, BMP or WEBP)"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  size: AreaSize,
  n: imageCount(imageEditCountMax, imageEditCountMax),
  seed: Schema.optionalKey(Seed),
  prompt_extend: promptExtend(false),
  safety_filter: SafetyFilter
}).annotate({ identifier: "ImageEdit" })
