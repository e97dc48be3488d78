import { Schema } from "effect"
import { imageEditProImagesMax, textCodePointsMax } from "../../domain/limits/Limits.ts"
import { choice, images, prompt } from "./Fields.ts"

export const aspectRatios = [
  "1:1",
  "2:3",
  "3:2",
  "3:4",
  "4:3",
  "4:5",
  "5:4",
  "9:16",
  "16:9",
  "21:9"
] as const

export const resolutions = ["1K", "2K"] as const

/** docs/reference/models.md#image-edit-pro */
export const ImageEditPro = Schema.Struct({
  prompt: prompt(textCodePointsMax, "Editing instruction"),
  images: images(imageEditProImagesMax, "Pictures to edit"),
  aspect_ratio: choice(aspectRatios, "1:1", "Width to height of the result"),
  resolution: choice(resolutions, "2K", "Preset of the longest side")
}).annotate({ identifier: "ImageEditPro" })
