import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import { failure, fieldsOf, invalid } from "./OpenAiFailure.ts"
import { filesOf } from "./Protocol.ts"
import type { Job, Reply, Vendor } from "./Protocol.ts"
import type { VendorRequest } from "./VendorRequest.ts"

/** Defaults of a submit. */
const videoDefaults = { model: "sora-2", seconds: "4", size: "720x1280" }

const progress: Readonly<Record<string, number>> = { queued: 0, completed: 100 }

const video = (
  { body, createdAt, id }: Job,
  status: string,
  error: object | null = null
): object => ({
  id,
  object: "video",
  status,
  ...videoDefaults,
  ...(typeof body === "object" ? body : {}),
  progress: progress[status] ?? 10,
  created_at: Math.floor(createdAt / 1000),
  completed_at: status === "completed" ? Math.floor(createdAt / 1000) + 60 : null,
  expires_at: status === "completed" ? Math.floor(createdAt / 1000) + 3600 : null,
  remixed_from_video_id: null,
  error
})

const missing = (id: string) =>
  failure(404, "invalid_request_error", null, `Video with id '${id}' not found.`)

/** The code and message of a failed job, by class. */
export const videoFailures: ReadonlyMap<VendorErrorClass, readonly [code: string, words: string]> =
  new Map([
    ["CONTENT", ["moderation_blocked", "Your request was blocked."]],
    ["FATAL_CLIENT", ["invalid_value", "The video cannot be made."]],
    ["FAILED", ["server_error", "oops"]]
  ])

const videoOf = (vendor: Vendor, id: string): Reply => {
  const job = vendor.poll(id)
  if (job === undefined) return missing(id)
  const reply = (status: string, error: object | null = null) => ({
    status: 200,
    json: video(job, status, error)
  })
  if (vendor.isRunning(job)) return reply(job.polls === 1 ? "queued" : "in_progress")
  const ending = vendor.endingOf(job, "video")
  if (ending._tag === "Made") return reply("completed")
  const [code, words] = videoFailures.get(ending.kind) ?? ["server_error", "oops"]
  return reply("failed", { code, message: ending.message ?? words })
}

export const submitVideo = (request: VendorRequest, vendor: Vendor): Reply => {
  const { input_reference: picture, ...rest } = Object.fromEntries(fieldsOf(request))
  const fields = { ...videoDefaults, ...rest }
  const unknown = Object.keys(rest).find((it) => !/^(?:model|prompt|seconds|size)$/u.test(it))
  if (unknown !== undefined) return invalid(`Unknown parameter: '${unknown}'.`)
  if (!("prompt" in fields)) return invalid("Missing required parameter: 'prompt'.")
  if (!["4", "8", "12"].includes(fields.seconds)) return invalid("seconds")
  if (!/^(?:1280x720|720x1280|1792x1024|1024x1792)$/u.test(fields.size)) return invalid("size")
  if (picture === "") return invalid("Invalid image: 'input_reference' is empty.")
  const job = vendor.buy(request, { prefix: "video_", body: fields })
  return { status: 200, json: video(job, "queued") }
}

const listVideos = ({ query }: VendorRequest, vendor: Vendor): Reply => {
  const listed = vendor.listedJobs
  const all = query.get("order") === "asc" ? listed : listed.toReversed()
  const after = all.findIndex(({ id }) => id === query.get("after")) + 1
  const size = Math.min(Number(query.get("limit") ?? 20), vendor.pageSize)
  const data = all.slice(after, after + size)
  return {
    status: 200,
    json: {
      object: "list",
      data: data.map((job) => video(job, "queued")),
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: after + size < all.length
    }
  }
}

/** Everything about videos except the submit. docs/reference/vendors.md#openai-videos */
export const videos = (request: VendorRequest, vendor: Vendor): Reply | undefined => {
  if (request.path === "/v1/videos") return listVideos(request, vendor)
  const [, id = "", content] = /^\/v1\/videos\/([^/]+)(\/content)?$/u.exec(request.path) ?? []
  if (id === "") return undefined
  const job = vendor.jobs.get(id)
  if (request.method === "DELETE") {
    return vendor.forget(id)
      ? { status: 200, json: { id, object: "video.deleted", deleted: true } }
      : missing(id)
  }
  if (content === undefined) return videoOf(vendor, id)
  if (job === undefined) return missing(id)
  if (vendor.isRunning(job)) return invalid("Video is not ready yet.")
  const [file] = filesOf(vendor.endingOf(job, "video"))
  return file === undefined
    ? failure(404, "invalid_request_error", null, "expired")
    : { status: 200, file }
}
