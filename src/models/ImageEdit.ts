import { Effect, Schema } from "effect"
import {
  imageEditAspectRatioMax,
  imageEditCountMax,
  imageEditImagesMax,
  imageEditPixelsMax,
  imageEditPixelsMin,
  promptLongCodePointsMax
} from "../domain/Limits.ts"
import {
  count,
  images,
  NegativePrompt,
  prompt,
  promptExtend,
  SafetyFilter,
  Seed
} from "./Fields.ts"
import { freeSize } from "./Size.ts"

/** Spec, Request bodies: `image-edit`; at most 3 images by contract 1. Result: `images`. */
export const ImageEdit = Schema.Struct({
  prompt: prompt(promptLongCodePointsMax, "What to do with the pictures"),
  images: images(imageEditImagesMax, "Reference pictures (JPEG, PNG, BMP or WEBP)"),
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
  seed: Schema.optionalKey(Seed),
  prompt_extend: promptExtend(false),
  safety_filter: SafetyFilter
}).annotate({ identifier: "ImageEdit" })
export type ImageEdit = typeof ImageEdit.Type
