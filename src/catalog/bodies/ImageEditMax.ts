import { Schema } from "effect"
import {
  imageEditMaxCountMax,
  imageEditMaxImagesMax,
  imageEditMaxSizePixelsMax,
  imageEditMaxSizePixelsMin,
  promptShortCodePointsMax
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
import { freeSize } from "./Size.ts"
import type { SizeRules } from "./Size.ts"

export const imageEditMaxSize: SizeRules = {
  sideMin: imageEditMaxSizePixelsMin,
  sideMax: imageEditMaxSizePixelsMax
}

/** The body follows the upstream model. docs/reference/models.md#image-edit-max */
export const ImageEditMax = Schema.Struct({
  prompt: prompt(promptShortCodePointsMax, "What to do with the pictures, in Chinese or English"),
  images: images(
    imageEditMaxImagesMax,
    "Pictures to edit (JPEG, PNG, BMP or WEBP), in order; the last one sets the aspect ratio"
  ),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  size: Schema.optionalKey(
    Schema.NullOr(freeSize(imageEditMaxSize)).annotate({
      description:
        "`width*height`, each 512 to 2048; absent or `null` keeps the last picture's shape near 1024*1024"
    })
  ),
  n: imageCount(imageEditMaxCountMax, 1),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "ImageEditMax" })
