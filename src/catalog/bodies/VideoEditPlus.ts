import { Schema } from "effect"
import { promptShortCodePointsMax, videoEditImagesMax } from "../../domain/limits/Limits.ts"
import {
  choice,
  count,
  image,
  images,
  NegativePrompt,
  prompt,
  promptExtend,
  SafetyFilter,
  Seed,
  ShortDuration,
  video
} from "./Fields.ts"
import { videoSizes } from "./Size.ts"

const VideoFunction = Schema.Literals([
  "image_reference",
  "video_repainting",
  "video_edit",
  "video_extension",
  "video_outpainting"
])

const scale = (side: string) =>
  Schema.optionalKey(
    Schema.Finite.check(
      Schema.isBetween({ minimum: 1, maximum: 2 }, { expected: "a number between 1 and 2" })
    ).annotate({ description: `\`video_outpainting\`: how far to grow to the ${side}` })
  )

const Fields = Schema.Struct({
  function: VideoFunction.annotate({ description: "What to do" }),
  prompt: prompt(promptShortCodePointsMax, "What the video shows, in Chinese or English"),
  negative_prompt: Schema.optionalKey(NegativePrompt),
  images: Schema.optionalKey(images(videoEditImagesMax, "Reference pictures")),
  obj_or_bg: Schema.optionalKey(
    Schema.Array(Schema.Literals(["obj", "bg"])).annotate({
      description: "`image_reference`: for each picture, whether it is a subject or the background"
    })
  ),
  video_url: Schema.optionalKey(video("The video to work on (MP4, at most 50 MB)")),
  mask_image: Schema.optionalKey(image("`video_edit`: white where to edit")),
  mask_frame_id: Schema.optionalKey(
    count(1, 10_000).annotate({ description: "`video_edit`: the frame that the mask belongs to" })
  ),
  mask_video_url: Schema.optionalKey(video("`video_edit`: a mask for each frame")),
  mask_type: Schema.optionalKey(Schema.Literals(["tracking", "fixed"])),
  expand_ratio: Schema.optionalKey(
    Schema.Finite.check(
      Schema.isBetween({ minimum: 0, maximum: 1 }, { expected: "a number between 0 and 1" })
    )
  ),
  expand_mode: Schema.optionalKey(Schema.Literals(["hull", "bbox", "original"])),
  control_condition: Schema.optionalKey(
    Schema.Literals(["posebodyface", "posebody", "depth", "scribble"]).annotate({
      description: "What to keep of the video's motion"
    })
  ),
  strength: Schema.optionalKey(
    Schema.Finite.check(
      Schema.isBetween({ minimum: 0, maximum: 1 }, { expected: "a number between 0 and 1" })
    ).annotate({ description: "How closely to follow `control_condition`" })
  ),
  first_frame: Schema.optionalKey(image("`video_extension`: starts with this")),
  last_frame: Schema.optionalKey(image("`video_extension`: ends with this")),
  first_clip_url: Schema.optionalKey(video("`video_extension`: starts with this")),
  last_clip_url: Schema.optionalKey(video("`video_extension`: ends with this")),
  top_scale: scale("top"),
  bottom_scale: scale("bottom"),
  left_scale: scale("left"),
  right_scale: scale("right"),
  size: choice(videoSizes["720P"], "1280*720", "`width*height`"),
  duration: Schema.optionalKey(ShortDuration),
  prompt_extend: promptExtend(true),
  seed: Schema.optionalKey(Seed),
  safety_filter: SafetyFilter
})
type Fields = typeof Fields.Type

const required = (field: keyof Fields, body: Fields) =>
  body[field] === undefined
    ? [{ path: [field], issue: `Required when function is "${body.function}"` }]
    : []

/** The fields that the upstream requires for each function. */
const missing = (body: Fields) => {
  switch (body.function) {
    case "image_reference":
      return required("images", body)
    case "video_repainting":
      return [...required("video_url", body), ...required("control_condition", body)]
    case "video_edit":
      return [
        ...required("video_url", body),
        ...(body.mask_video_url === undefined ? required("mask_image", body) : [])
      ]
    case "video_extension":
      return [body.first_frame, body.last_frame, body.first_clip_url, body.last_clip_url].some(
        (it) => it !== undefined
      )
        ? []
        : required("first_frame", body)
    case "video_outpainting":
      return required("video_url", body)
  }
}

const roles = (body: Fields) =>
  body.obj_or_bg !== undefined && body.obj_or_bg.length !== (body.images ?? []).length
    ? [
        {
          path: ["obj_or_bg"],
          issue: `Expected one entry for each of the ${(body.images ?? []).length} images, got ${body.obj_or_bg.length}`
        }
      ]
    : []

/** The body follows the upstream model. docs/reference/models.md#video-edit-plus */
export const VideoEditPlus = Fields.check(
  Schema.makeFilter<Fields>((body) => [...missing(body), ...roles(body)], {
    toJsonSchema: () => [{}, true]
  })
).annotate({ identifier: "VideoEditPlus" })
