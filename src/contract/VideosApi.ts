import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { TaskId } from "../domain/Ids.ts"
import { Metadata } from "../domain/task/Metadata.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { requestHeaders, withHeaders } from "./Headers.ts"
import { FormFile, ModelName, openBody, Picture, shapedHeaders } from "./ImagesApi.ts"
import { listLimit } from "./Lists.ts"
import { problems } from "./Problems.ts"

/** A task as a video in OpenAI's format. docs/reference/shapes.md#videos */
export const Video = Schema.Struct({
  id: TaskId,
  object: Schema.Literal("video"),
  model: Schema.String,
  status: Schema.Literals(["queued", "in_progress", "completed", "failed"]),
  progress: Schema.Int,
  prompt: Schema.optionalKey(Schema.NullOr(Schema.String)),
  seconds: Schema.String,
  size: Schema.optionalKey(Schema.NullOr(Schema.String)),
  created_at: Schema.Int,
  completed_at: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  expires_at: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  remixed_from_video_id: Schema.optionalKey(Schema.Null),
  error: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        code: Schema.optionalKey(Schema.String),
        message: Schema.optionalKey(Schema.String)
      })
    )
  ),
  metadata: Schema.optionalKey(Metadata)
})

export const VideoPage = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Video),
  first_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  last_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  has_more: Schema.Boolean
})

export const DeletedVideo = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("video.deleted"),
  deleted: Schema.Boolean
})

const params = { video_id: TaskId.annotate({ description: "The id that create returned" }) }
const reads = [401, 403, 404, 405, 429, 500, 503]
const success = withHeaders(Video, shapedHeaders)
const theVideo = { 200: { description: "The video" } }

const bodyOf = (reference: Schema.Top) =>
  openBody({
    model: ModelName,
    prompt: Schema.String,
    seconds: Schema.optionalKey(Schema.String.annotate({ description: "`duration` of the model" })),
    size: Schema.optionalKey(Schema.String.annotate({ description: "`1280x720`" })),
    metadata: Schema.optionalKey(Metadata),
    input_reference: Schema.optionalKey(reference)
  })

const Mp4 = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "video/mp4" }))

export const createVideo = HttpApiEndpoint.post("createVideo", "/v1/videos", {
  headers: {
    "Idempotency-Key": requestHeaders["Idempotency-Key"],
    "X-Service-Max-Cost": requestHeaders["X-Service-Max-Cost"]
  },
  payload: [bodyOf(Picture), bodyOf(FormFile).pipe(HttpApiSchema.asMultipart())],
  success,
  error: problems(400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 424, 429, 431, 500, 503)
}).annotateMerge(
  documented({
    summary: "Create a video",
    example: { model: "text-to-video-spark", prompt: "A lighthouse at dawn" },
    responses: theVideo
  })
)

export const listVideos = HttpApiEndpoint.get("listVideos", "/v1/videos", {
  query: {
    after: Schema.optionalKey(TaskId),
    limit: Schema.optionalKey(listLimit),
    order: Schema.optionalKey(Schema.Literals(["asc", "desc"]))
  },
  success: VideoPage,
  error: problems(400, ...reads)
}).annotateMerge(
  documented({ summary: "List videos", responses: { 200: { description: "A page" } } })
)

export const getVideo = HttpApiEndpoint.get("getVideo", "/v1/videos/:video_id", {
  params,
  success,
  error: problems(...reads)
}).annotateMerge(documented({ summary: "Get a video", responses: theVideo }))

export const deleteVideo = HttpApiEndpoint.delete("deleteVideo", "/v1/videos/:video_id", {
  params,
  success: DeletedVideo,
  error: problems(...reads)
}).annotateMerge(
  documented({
    summary: "Delete a video, and cancel it if it is running",
    responses: { 200: { description: "It was deleted" } }
  })
)

export const remixVideo = HttpApiEndpoint.post("remixVideo", "/v1/videos/:video_id/remix", {
  params,
  success,
  error: problems(400, ...reads)
}).annotateMerge(
  documented({ summary: "Remix a video; no model supports this now", responses: theVideo })
)

export const getVideoContent = HttpApiEndpoint.get(
  "getVideoContent",
  "/v1/videos/:video_id/content",
  {
    params,
    success: [Mp4, Mp4.pipe(HttpApiSchema.status(206))],
    error: problems(400, 401, 403, 404, 405, 416, 429, 500, 503)
  }
).annotateMerge(
  documented({
    summary: "Download a video, whole or a range",
    responses: { ...theVideo, 206: { description: "A part of it" } }
  })
)

/** Videos in OpenAI's format. docs/reference/shapes.md#videos */
export class VideosApi extends HttpApiGroup.make("videos", { topLevel: true })
  .add(createVideo, listVideos, getVideo, deleteVideo, remixVideo, getVideoContent)
  .middleware(InferenceKey) {}
