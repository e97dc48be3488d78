import { Clock, Effect, Option, Schema } from "effect"
import { inspectImage } from "../../catalog/media/Image.ts"
import type { ImageRules } from "../../catalog/media/MediaRules.ts"
import type { AccountSetting } from "../../domain/Provider.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { bodyFields } from "../BodyFields.ts"
import { jobFailed } from "../Faults.ts"
import { longList, promptIn } from "../JobList.ts"
import { multipart } from "../Multipart.ts"
import { optionalField } from "../OptionalField.ts"
import { percentOf, pollIntervalAtAge, submitTimeout } from "../Polling.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type {
  Handle,
  ListedJob,
  ListQuery,
  Progress,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import { baseOf, apiOf, rules } from "./OpenAiCalls.ts"
import { sizeOf } from "./OpenAiVideoSizes.ts"

const Fields = Schema.Struct({
  prompt: Schema.String,
  duration: Schema.optionalKey(Schema.Finite),
  size: Schema.optionalKey(Schema.NullOr(Schema.String)),
  resolution: Schema.optionalKey(Schema.String)
})
const readFields = bodyFields(Fields)
const readOption = Schema.decodeUnknownOption(Fields)

/** The fields of a body that are sent. */
export const taken: ReadonlySet<string> = new Set([
  "prompt",
  "duration",
  "size",
  "resolution",
  "image"
])

/**
 * OpenAI has shut down this API. Other bases that are compatible with it may still have it.
 * docs/reference/vendors.md#openai-videos
 */
export const hasModel = ({ baseUrl }: AccountSetting): boolean =>
  new URL(baseUrl).hostname !== "api.openai.com"

const Video = Schema.Struct({
  id: Schema.NonEmptyString,
  status: Schema.String,
  model: optionalField(Schema.String),
  prompt: optionalField(Schema.String),
  seconds: optionalField(Schema.Union([Schema.String, Schema.Finite])),
  created_at: optionalField(Schema.Finite),
  progress: Schema.optionalKey(Schema.Unknown),
  error: optionalField(
    Schema.Struct({ code: optionalField(Schema.String), message: optionalField(Schema.String) })
  )
})
type Video = typeof Video.Type

const Page = Schema.Struct({
  data: Schema.Array(Video),
  has_more: optionalField(Schema.Boolean)
})

/** The most pages of the list that are read, 100 videos each, newest first. */
const pagesMax = 20

const Job = Schema.Struct({ id: Schema.NonEmptyString, submittedAtMillis: Schema.Finite })
const decodeJob = Schema.decodeUnknownOption(Job)

/** A job that is polled; its content requires the key. docs/reference/vendors.md#openai-videos */
export const make = (context: AdapterContext): VendorAccount => {
  const api = apiOf(context)
  const base = baseOf(context)
  return {
    accountId: context.accountId,
    showsProgress: true,
    submit: Effect.fn("OpenAiVideos.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const [picture] = request.media
      const bytes = yield* picture?.bytes ?? Effect.undefined
      const fields = yield* fieldsOf(request, bytes)
      const form = yield* multipart([
        ...Object.entries(fields),
        ...(picture === undefined || bytes === undefined
          ? []
          : [["input_reference", { name: "first", mime: picture.mime, bytes }] as const])
      ])
      const { id } = yield* callVendor(api, {
        purpose: "submit",
        model: request.upstreamModel,
        method: "POST",
        url: `${base}/videos`,
        raw: form,
        timeout: submitTimeout,
        schema: Video
      })
      const submittedAtMillis = yield* Clock.currentTimeMillis
      return {
        _tag: "Accepted",
        handle: { id, submittedAtMillis },
        pollAfter: pollIntervalAtAge(0)
      }
    }),
    poll: Effect.fnUntraced(function* (handle: Handle) {
      const { id, submittedAtMillis } = yield* jobOf(handle)
      const url = `${base}/videos/${encodeURIComponent(id)}`
      const video = yield* callVendor(api, { purpose: "query", url, schema: Video })
      const age = (yield* Clock.currentTimeMillis) - submittedAtMillis
      return yield* progressOf(video, `${url}/content`, age)
    }),
    cancel: () => Effect.succeed("Unsupported"),
    list: makeList(api, base)
  }
}

/** Lists videos. The list shows the prompt, model and length of each video. */
const makeList = (api: VendorApi, base: string) =>
  Effect.fn("OpenAiVideos.list")(function* ({ from, until }: ListQuery) {
    const found: Array<ListedJob> = []
    let after = ""
    for (let page = 1; page <= pagesMax; page += 1) {
      const url = `${base}/videos?limit=100&order=desc${after}`
      const { data, has_more: hasMore } = yield* callVendor(api, {
        purpose: "query",
        url,
        schema: Page
      })
      for (const video of data) {
        const at = (video.created_at ?? 0) * 1000
        // The vendor's times are whole seconds
        if (at >= from - 1000 && at <= until) found.push(listedOf(video, at))
      }
      const last = data.at(-1)
      if (hasMore !== true || last === undefined) return found
      if ((last.created_at ?? 0) * 1000 < from - 1000) return found
      after = `&after=${encodeURIComponent(last.id)}`
    }
    return yield* longList
  })

const listedOf = (video: Video, createdAtMillis: number): ListedJob => ({
  jobId: video.id,
  createdAtMillis,
  handle: () => ({ id: video.id, submittedAtMillis: createdAtMillis }),
  compare: (request) => {
    const { model = request.upstreamModel, prompt, seconds } = video
    if (model !== request.upstreamModel) return "other"
    const fields = readOption(request.body)
    const length = secondsOf(Option.getOrUndefined(fields)?.duration)
    if (seconds !== undefined && String(seconds) !== length) return "other"
    if (prompt === undefined) return "open"
    return prompt === promptIn(request) ? "same" : "other"
  }
})

const jobOf = (handle: Handle) =>
  Effect.mapError(
    Effect.fromOption(decodeJob(handle)),
    () => new VendorError({ class: "LOST", message: "The job's handle is not OpenAI's" })
  )

/** The lengths that the upstream offers, in seconds. A request gets the next longer one. */
const lengths = [4, 8, 12]

const secondsOf = (duration = 5): string => String(lengths.find((it) => it >= duration) ?? 12)

const fieldsOf = Effect.fnUntraced(function* (request: SubmitRequest, picture?: Uint8Array) {
  const { duration, prompt, ...sized } = yield* readFields(request)
  return {
    model: request.upstreamModel,
    prompt,
    seconds: secondsOf(duration),
    size: sizeOf(sized, picture === undefined ? undefined : yield* pixelsOf(picture))
  }
})

const anyPicture: ImageRules = {
  kind: "image",
  formats: ["JPEG", "PNG", "BMP", "WEBP"],
  bytesMax: Infinity,
  sideMin: 1,
  pngTransparency: "allowed"
}

/** The gateway has inspected the image already. An unreadable one is left to the vendor. */
const pixelsOf = (picture: Uint8Array) =>
  Effect.orElseSucceed(inspectImage(picture, anyPicture), () => undefined)

const progressOf = (
  { error, progress, status }: Video,
  content: string,
  ageMillis: number
): Effect.Effect<Progress, VendorError> => {
  switch (status) {
    case "completed":
      return Effect.succeed({
        _tag: "Done",
        result: { items: [{ _tag: "Url", url: content, mime: "video/mp4", needsAuth: true }] }
      })
    case "failed":
    case "cancelled":
      return Effect.fail(jobFailed(rules, { code: error?.code, message: error?.message }))
    default:
      return Effect.succeed({
        _tag: "Running",
        pollAfter: pollIntervalAtAge(ageMillis),
        percent: percentOf(progress, 100)
      })
  }
}
