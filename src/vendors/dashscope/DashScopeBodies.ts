import { Effect } from "effect"
import { bodyFields, unsupportedModel } from "../BodyFields.ts"
import { listOf } from "../MediaTexts.ts"
import type { MediaAt } from "../MediaTexts.ts"
import type { SubmitRequest } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import { common, Fields, seconds, texts } from "./DashScopeFields.ts"
import type { Shape } from "./DashScopeFields.ts"
import { shapesOf } from "./DashScopeVideos.ts"

const fieldsOf = bodyFields(Fields)

/** Null and absent fields are not sent, so the upstream's default applies. */
const present = (record: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(record).filter(([, value]) => value !== undefined && value !== null)
  )

/** `audio` is not sent with an `audio_url`, which overrides it. */
const sound = ({ audio }: Fields, at: MediaAt) => (at("#/audio_url") === undefined ? { audio } : {})

const imagesOf = (fields: Fields, at: MediaAt) => listOf(at, "images", fields.images?.length ?? 0)

/** Models up to wan2.6. */
const asynchronous: Readonly<Record<string, Shape>> = {
  "text-to-video-spark": {
    path: "/video-generation/video-synthesis",
    input: (fields, at) => ({ ...texts(fields), audio_url: at("#/audio_url") }),
    parameters: (fields, at) => ({
      size: fields.size,
      ...seconds(fields),
      ...common(fields),
      ...sound(fields, at)
    })
  },
  "image-to-video-spark": {
    path: "/video-generation/video-synthesis",
    input: (fields, at) => ({
      ...texts(fields),
      img_url: at("#/image"),
      audio_url: at("#/audio_url")
    }),
    parameters: (fields, at) => ({
      resolution: fields.resolution,
      ...seconds(fields),
      ...common(fields),
      ...sound(fields, at)
    })
  },
  "keyframe-to-video-plus": {
    path: "/image2video/video-synthesis",
    input: (fields, at) => ({
      first_frame_url: at("#/image"),
      last_frame_url: at("#/last_frame"),
      ...texts(fields),
      template: fields.template
    }),
    parameters: (fields) => ({
      resolution: fields.resolution,
      ...seconds(fields),
      ...common(fields)
    })
  },
  "image-edit": {
    path: "/image2image/image-synthesis",
    input: (fields, at) => ({ ...texts(fields), images: imagesOf(fields, at) }),
    parameters: (fields) => ({ size: fields.size, n: fields.n, ...common(fields) })
  },
  "text-to-image-preview": {
    path: "/text2image/image-synthesis",
    input: texts,
    parameters: (fields) => ({ size: fields.size, n: fields.n, ...common(fields) })
  },
  "video-edit-plus": {
    path: "/video-generation/video-synthesis",
    input: (fields, at) => ({
      function: fields.function,
      ...texts(fields),
      ref_images_url: fields.images === undefined ? undefined : imagesOf(fields, at),
      video_url: at("#/video_url"),
      mask_image_url: at("#/mask_image"),
      mask_frame_id: fields.mask_frame_id,
      mask_video_url: at("#/mask_video_url"),
      first_frame_url: at("#/first_frame"),
      last_frame_url: at("#/last_frame"),
      first_clip_url: at("#/first_clip_url"),
      last_clip_url: at("#/last_clip_url")
    }),
    parameters: (fields) => ({
      obj_or_bg: fields.obj_or_bg,
      size: fields.size,
      control_condition: fields.control_condition,
      strength: fields.strength,
      mask_type: fields.mask_type,
      expand_ratio: fields.expand_ratio,
      expand_mode: fields.expand_mode,
      top_scale: fields.top_scale,
      bottom_scale: fields.bottom_scale,
      left_scale: fields.left_scale,
      right_scale: fields.right_scale,
      ...common(fields)
    })
  }
}

/** One user message: the images in order, then one text. */
const blocking: Shape = {
  path: "/multimodal-generation/generation",
  input: (fields, at) => ({
    messages: [
      {
        role: "user",
        content: [...imagesOf(fields, at).map((image) => ({ image })), { text: fields.prompt }]
      }
    ]
  }),
  parameters: (fields) => ({
    negative_prompt: fields.negative_prompt,
    size: fields.size,
    n: fields.n ?? 1,
    ...common(fields)
  })
}

export interface UpstreamBody {
  /** The path below `/api/v1`. */
  readonly path: string
  readonly body: unknown
}

const build = Effect.fnUntraced(function* (
  shape: Shape | undefined,
  request: SubmitRequest,
  at: MediaAt
): Effect.fn.Return<UpstreamBody, VendorError> {
  if (shape === undefined) return yield* unsupportedModel(request)
  const fields = yield* fieldsOf(request)
  return {
    path: `/services/aigc${shape.path}`,
    body: {
      model: request.upstreamModel,
      input: present(shape.input(fields, at)),
      parameters: present(shape.parameters(fields, at))
    }
  }
})

/** The body of a job that is polled. */
export const asyncBody = (request: SubmitRequest, at: MediaAt) =>
  build((shapesOf(request.upstreamModel) ?? asynchronous)[request.model], request, at)

/** The body of a blocking call. */
export const syncBody = (request: SubmitRequest, at: MediaAt) => build(blocking, request, at)
