import { Effect, Schema } from "effect"
import {
  imageEditAspectRatioMax,
  imageEditCountMax,
  imageEditPixelsMax,
  imageEditPixelsMin,
  promptLongCodePointsMax
} from "../domain/Limits.ts"
import { count, NegativePrompt, prompt, promptExtend, SafetyFilter, Seed } from "./Fields.ts"
import { freeSize } from "./Size.ts"

/** `text-to-image-preview`: the spec shows its result only, so the body follows the upstream (vendors.md A1). Result: `images`. */
export const TextToImagePreview = Schema.Struct({
  prompt: prompt(promptLongCodePointsMax, "What the image shows, in Chinese or English"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  size: Schema.NullOr(
    freeSize({
      pixelsMin: imageEditPixelsMin,
      pixelsMax: imageEditPixelsMax,
      aspectRatioMax: imageEditAspectRatioMax
    })
  )
    .annotate({
      default: "1280*1280",
      description:
        "`width*height`; total pixels between 768*768 and 1440*1440, aspect ratio between 1:4 and 4:1; " +
        "`null` leaves the choice to the model"
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed("1280*1280"))),
  n: count(1, imageEditCountMax)
    .annotate({ default: imageEditCountMax, description: "How many images; affects the cost" })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(imageEditCountMax))),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
}).annotate({ identifier: "TextToImagePreview" })
export type TextToImagePreview = typeof TextToImagePreview.Type
