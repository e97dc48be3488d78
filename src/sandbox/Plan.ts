import { Schema } from "effect"
import { promptLongCodePointsMax, seedMax, videoShortSeconds } from "../domain/limits/Limits.ts"
import { MediaKind } from "../domain/task/Task.ts"
import type { ResultKind } from "../domain/task/Task.ts"
import type { SubmitRequest } from "../vendors/VendorClient.ts"
import { seedOfTask } from "./Seed.ts"

/** Describes the result to render. Small JSON without media, because it is part of the handle. */
export const Plan = Schema.Struct({
  kind: MediaKind,
  prompt: Schema.String,
  width: Schema.Int,
  height: Schema.Int,
  count: Schema.Int,
  seed: Schema.Int,
  seconds: Schema.Int,
  framesPerSecond: Schema.Int,
  hasSound: Schema.Boolean
})
export type Plan = typeof Plan.Type

/** The fields that affect the result, of all bodies. */
export const RenderedFields = Schema.Struct({
  prompt: Schema.optionalKey(Schema.NullOr(Schema.String)),
  size: Schema.optionalKey(Schema.NullOr(Schema.String)),
  resolution: Schema.optionalKey(Schema.NullOr(Schema.String)),
  aspect_ratio: Schema.optionalKey(Schema.NullOr(Schema.String)),
  n: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  duration: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  seed: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  audio: Schema.optionalKey(Schema.NullOr(Schema.Boolean))
})
export type RenderedFields = typeof RenderedFields.Type

interface Size {
  readonly width: number
  readonly height: number
}

interface ModelPlan {
  readonly kind: Plan["kind"]
  /** Used if the body has no size or resolution. */
  readonly size: Size
  /** Used if the body has no `n`. */
  readonly count: number
  readonly framesPerSecond: number
  /** Whether videos have a sound track, unless `audio` is false. */
  readonly hasSound: boolean
}

const images = (width: number, height: number, count: number): ModelPlan => ({
  kind: "images",
  size: { width, height },
  count,
  framesPerSecond: 1,
  hasSound: false
})

const videos = (framesPerSecond: number, hasSound: boolean): ModelPlan => ({
  kind: "videos",
  size: { width: 1280, height: 720 },
  count: 1,
  framesPerSecond,
  hasSound
})

const withoutSize = (kind: Plan["kind"], hasSound: boolean): ModelPlan => ({
  kind,
  size: { width: 1, height: 1 },
  count: 1,
  framesPerSecond: 1,
  hasSound
})

/** docs/reference/models.md#labels */
const models: Readonly<Record<string, ModelPlan>> = {
  "text-to-image-max": images(1664, 928, 1),
  "image-edit": images(1280, 1280, 4),
  "image-edit-pro": images(2048, 2048, 1),
  "text-to-video-spark": videos(24, true),
  "keyframe-to-video-plus": videos(30, false),
  "image-edit-max": images(1024, 1024, 1),
  "text-to-image-preview": images(1280, 1280, 4),
  "image-to-video-spark": videos(24, true),
  "video-edit-plus": videos(24, false)
}

const otherModel = (result: ResultKind): ModelPlan => {
  if (result === "audios") return withoutSize(result, true)
  if (result === "meshes" || result === "documents") return withoutSize(result, false)
  return result === "videos" ? videos(24, true) : images(1024, 1024, 1)
}

const longestSides: Readonly<Record<string, number>> = { "1K": 1024, "2K": 2048, "4K": 4096 }

const tiers: Readonly<Record<string, Size>> = {
  "480P": { width: 832, height: 480 },
  "720P": { width: 1280, height: 720 },
  "1080P": { width: 1920, height: 1080 }
}

/** Limits of the result. */
const sideMax = 4096
const countMax = 10
const secondsMax = 60

const between = (minimum: number, value: number, maximum: number): number =>
  Math.min(maximum, Math.max(minimum, value))

const pair = (text: string | null | undefined, separator: RegExp): Size | undefined => {
  const [width, height, ...rest] = (text ?? "").split(separator).map(Number)
  const isPair = width !== undefined && height !== undefined && rest.length === 0
  return isPair && width > 0 && height > 0 ? { width, height } : undefined
}

/** The size by longest side and aspect ratio, as in `image-edit-pro`. */
const sizeByRatio = (fields: RenderedFields): Size | undefined => {
  const longest = longestSides[fields.resolution ?? ""]
  if (longest === undefined) return undefined
  const ratio = pair(fields.aspect_ratio ?? "1:1", /:/u) ?? { width: 1, height: 1 }
  const share = longest / Math.max(ratio.width, ratio.height)
  return { width: ratio.width * share, height: ratio.height * share }
}

/** Rounds a side. Videos have even sides, because their colors are stored per two by two pixels. */
const rounded = (side: number, kind: Plan["kind"]): number =>
  kind === "videos"
    ? between(2, Math.round(side / 2) * 2, sideMax)
    : between(1, Math.round(side), sideMax)

/** Shortens a long prompt, because the handle is stored with the task. */
const shortened = (text: string): string =>
  Array.from(text.slice(0, promptLongCodePointsMax * 2))
    .slice(0, promptLongCodePointsMax)
    .join("")

/** `model` is a label, or the name of a described model. */
export const planOf = (
  request: Pick<SubmitRequest, "taskId" | "model" | "result">,
  fields: RenderedFields,
  text: string
): Plan => {
  const model = Object.hasOwn(models, request.model)
    ? (models[request.model] ?? otherModel(request.result))
    : otherModel(request.result)
  const size =
    pair(fields.size, /[*x]/u) ??
    sizeByRatio(fields) ??
    tiers[fields.resolution ?? ""] ??
    model.size
  const isTimed = model.kind === "videos" || model.kind === "audios"
  return {
    kind: model.kind,
    prompt: shortened(text),
    width: rounded(size.width, model.kind),
    height: rounded(size.height, model.kind),
    count: isTimed ? 1 : between(1, fields.n ?? model.count, countMax),
    seed: between(0, fields.seed ?? seedOfTask(request.taskId), seedMax),
    seconds: isTimed ? between(1, fields.duration ?? videoShortSeconds, secondsMax) : 0,
    framesPerSecond: model.framesPerSecond,
    hasSound: model.hasSound && fields.audio !== false
  }
}
