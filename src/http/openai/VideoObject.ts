import { DateTime, Option, Schema } from "effect"
import type { Video as VideoView } from "../../contract/VideosApi.ts"
import { artifactHours, videoShortSeconds } from "../../domain/limits/Limits.ts"
import type { TaskStatus } from "../../domain/task/Task.ts"
import type { Video } from "../../tasks/videos/Videos.ts"
import { sizeOfTier } from "./VideoRequest.ts"

/** The length of a video. In a described body it may be a text. */
const Length = Schema.Union([Schema.Finite, Schema.String])

const Fields = Schema.Struct({
  prompt: Schema.optionalKey(Schema.String),
  duration: Schema.optionalKey(Length),
  seconds: Schema.optionalKey(Length),
  size: Schema.optionalKey(Schema.NullOr(Schema.String)),
  resolution: Schema.optionalKey(Schema.String)
})
const decodeFields = Schema.decodeUnknownOption(Fields)

/** OpenAI's status and progress, by state of the task. Of a vendor that reports no progress, half is shown. */
const states = {
  pending: { status: "queued", progress: 0 },
  processing: { status: "in_progress", progress: 50 },
  completed: { status: "completed", progress: 100 },
  failed: { status: "failed", progress: 0 }
} as const satisfies Record<TaskStatus, object>

const seconds = (time: DateTime.Utc): number => Math.floor(DateTime.toEpochMillis(time) / 1000)

/** A task in OpenAI's format for videos. docs/reference/shapes.md#videos */
export const videoOf = (task: Video): typeof VideoView.Encoded => {
  const body = Option.getOrElse(decodeFields(task.body), (): typeof Fields.Type => ({}))
  const pixels = body.size ?? sizeOfTier(body.resolution) ?? null
  const isDone = task.status === "completed"
  return {
    id: task.id,
    object: "video",
    model: task.model,
    ...states[task.status],
    ...(task.status === "processing" && task.progress !== null ? { progress: task.progress } : {}),
    prompt: body.prompt ?? null,
    seconds: String(body.duration ?? body.seconds ?? videoShortSeconds),
    size: pixels === null ? null : pixels.replace("*", "x"),
    created_at: seconds(task.createdAt),
    completed_at: isDone ? seconds(task.updatedAt) : null,
    expires_at: isDone ? seconds(DateTime.add(task.updatedAt, { hours: artifactHours })) : null,
    remixed_from_video_id: null,
    error:
      task.error === null
        ? null
        : { code: String(task.error.code), message: `${task.error.title}: ${task.error.detail}` },
    ...(task.metadata === null ? {} : { metadata: task.metadata })
  }
}

/** The same video in its state at creation, which a repeated request gets again. */
export const createdVideoOf = (task: Video): typeof VideoView.Encoded => ({
  ...videoOf(task),
  ...states.pending,
  completed_at: null,
  expires_at: null,
  error: null
})
