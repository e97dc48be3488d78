import { pixel } from "./Upstream.ts"
import type { Job, Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (status: number, type: string, code: string | null, message: string): Reply => ({
  status,
  headers: { "x-request-id": "req_1" },
  json: { error: { message, type, param: null, code } }
})

const invalid = (message: string) => failure(400, "invalid_request_error", "invalid_value", message)

/** Fields of either kind of body, as texts. */
const fieldsOf = ({ form, json }: Seen): ReadonlyMap<string, string> =>
  json === undefined
    ? new Map(Array.from(form, ([name, [part]]) => [name, part?.text ?? ""]))
    : new Map(Object.entries(json).map(([name, value]) => [name, String(value)]))

/** What a submit gets where it names nothing. */
const videoDefaults = { model: "sora-2", seconds: "4", size: "720x1280" }

const video = (
  { body, createdAt, id }: Job,
  status: string,
  error: object | null = null
): object => ({
  id,
  object: "video",
  status,
  ...videoDefaults,
  ...body,
  progress: { queued: 0, completed: 100 }[status] ?? 10,
  created_at: Math.floor(createdAt / 1000),
  completed_at: status === "completed" ? Math.floor(createdAt / 1000) + 60 : null,
  expires_at: status === "completed" ? Math.floor(createdAt / 1000) + 3600 : null,
  remixed_from_video_id: null,
  error
})

const missing = (id: string) =>
  failure(404, "invalid_request_error", null, `Video with id '${id}' not found.`)

const videoOf = (upstream: Upstream, id: string): Reply => {
  const found = upstream.poll(id)
  if (found === undefined) return missing(id)
  const { isRunning, job } = found
  const reply = (status: string, error: object | null = null) => ({
    status: 200,
    json: video(job, status, error)
  })
  if (isRunning) return reply(job.polls === 1 ? "queued" : "in_progress")
  if (upstream.ending === "failed")
    return reply("failed", { code: "server_error", message: "oops" })
  if (upstream.ending === "content") {
    return reply("failed", { code: "moderation_blocked", message: "Your request was blocked." })
  }
  return reply("completed")
}

const submitVideo = (seen: Seen, upstream: Upstream): Reply => {
  const { input_reference: picture, ...rest } = Object.fromEntries(fieldsOf(seen))
  const fields = { ...videoDefaults, ...rest }
  const unknown = Object.keys(rest).find((it) => !/^(?:model|prompt|seconds|size)$/u.test(it))
  if (unknown !== undefined) return invalid(`Unknown parameter: '${unknown}'.`)
  if (!("prompt" in fields)) return invalid("Missing required parameter: 'prompt'.")
  if (!["4", "8", "12"].includes(fields.seconds)) return invalid("seconds")
  if (!/^(?:1280x720|720x1280|1792x1024|1024x1792)$/u.test(fields.size)) return invalid("size")
  if (picture === "") return invalid("Invalid image: 'input_reference' is empty.")
  const job = upstream.buy({ ...seen, json: fields }, "video_")
  return { status: 200, json: video(job, "queued") }
}

const listVideos = ({ query }: Seen, upstream: Upstream): Reply => {
  const listed = upstream.listedJobs
  const all = query.get("order") === "asc" ? listed : listed.toReversed()
  const after = all.findIndex(({ id }) => id === query.get("after")) + 1
  const size = Math.min(Number(query.get("limit") ?? 20), upstream.pageSize)
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

const videos = (seen: Seen, upstream: Upstream): Reply | undefined => {
  if (seen.path === "/v1/videos") return listVideos(seen, upstream)
  const [, id = "", content] = /^\/v1\/videos\/([^/]+)(\/content)?$/u.exec(seen.path) ?? []
  if (id === "") return undefined
  const job = upstream.jobs.get(id)
  if (seen.method === "DELETE") {
    return upstream.jobs.delete(id)
      ? { status: 200, json: { id, object: "video.deleted", deleted: true } }
      : missing(id)
  }
  if (content === undefined) return videoOf(upstream, id)
  if (job === undefined) return missing(id)
  if (job.polls <= upstream.runningPolls) return invalid("Video is not ready yet.")
  return upstream.isResultGone
    ? failure(404, "invalid_request_error", null, "expired")
    : { status: 200, media: { type: "video/mp4", ...upstream.media } }
}

const classicSizes = new Set(["1024x1024", "1536x1024", "1024x1536", "auto"])

/** The newer models make any size within these bounds. */
const isSize = (model: string, size: string): boolean => {
  if (classicSizes.has(size)) return true
  const [width = 0, height = 0] = (/^\d+x\d+$/u.exec(size)?.[0] ?? "").split("x").map(Number)
  return (
    model.startsWith("gpt-image-2") &&
    width % 16 === 0 &&
    height % 16 === 0 &&
    Math.max(width, height) <= Math.min(3840, 3 * Math.min(width, height))
  )
}

const imageFields =
  /^(?:model|prompt|n|size|quality|background|moderation|user|output_format|output_compression|input_fidelity|safety_identifier|stream|image(?:\[\])?|mask)$/u

const faultOfImages = (seen: Seen, fields: ReadonlyMap<string, string>): Reply | undefined => {
  const isEdit = seen.path.endsWith("/edits")
  const type = seen.headers["content-type"] ?? ""
  if (isEdit !== type.startsWith("multipart/form-data")) return invalid("Unsupported content type")
  const unknown = [...fields.keys()].find((it) => !imageFields.test(it))
  if (unknown !== undefined) return invalid(`Unknown parameter: '${unknown}'.`)
  for (const name of ["model", "prompt"]) {
    if (!fields.has(name)) return invalid(`Missing required parameter: '${name}'.`)
  }
  const pictures = [...(seen.form.get("image") ?? []), ...(seen.form.get("image[]") ?? [])]
  if (isEdit && pictures.length === 0) return invalid("Missing required parameter: 'image'.")
  if (pictures.some(({ fileName }) => fileName === undefined)) return invalid("Invalid image")
  if (!isSize(fields.get("model") ?? "", fields.get("size") ?? "auto")) return invalid("size")
  return /^(?:[1-9]|10)$/u.test(fields.get("n") ?? "1") ? undefined : invalid("n")
}

const images = (seen: Seen, upstream: Upstream): Reply => {
  const fields = fieldsOf(seen)
  const refused = faultOfImages(seen, fields)
  if (refused !== undefined) return refused
  if (upstream.ending === "content") {
    return failure(
      400,
      "image_generation_user_error",
      "moderation_blocked",
      "Rejected by the safety system."
    )
  }
  if (upstream.ending === "failed")
    return failure(500, "server_error", "server_error", "The server had an error")
  const job = upstream.buy(seen, "img_", Number(fields.get("n") ?? 1))
  const data = Array.from({ length: upstream.made(job) }, () => ({
    b64_json: pixel.toString("base64")
  }))
  const size = fields.get("size") ?? "auto"
  return {
    status: 200,
    json: {
      created: Math.floor(job.createdAt / 1000),
      background: "opaque",
      data,
      output_format: fields.get("output_format") ?? "png",
      quality: fields.get("quality") ?? "medium",
      size: size === "auto" ? "1024x1024" : size,
      usage: {
        input_tokens: 20,
        input_tokens_details: { text_tokens: 20, image_tokens: 0 },
        output_tokens: 1000,
        total_tokens: 1020
      }
    }
  }
}

const isSubmit = ({ method, path }: Seen) =>
  method === "POST" && /^\/v1\/(?:videos|images\/(?:generations|edits))$/u.test(path)

/** docs/reference/vendors.md#openai-images and docs/reference/vendors.md#openai-videos */
export const openai: Protocol = {
  key: "sk-openai-test-0001",
  refusals: {
    "429": failure(429, "requests", "rate_limit_exceeded", "Rate limit reached."),
    unavailable: failure(503, "server_error", "server_error", "The engine is overloaded."),
    operator: failure(429, "insufficient_quota", "insufficient_quota", "You exceeded your quota."),
    content: failure(400, "image_generation_user_error", "moderation_blocked", "Rejected."),
    client: invalid("Invalid size"),
    media: invalid("Invalid image")
  },
  isSubmit,
  respond: (seen, upstream) => {
    if (seen.headers.authorization !== `Bearer ${upstream.key}`) {
      return failure(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided")
    }
    if (!isSubmit(seen)) return videos(seen, upstream)
    return seen.path === "/v1/videos" ? submitVideo(seen, upstream) : images(seen, upstream)
  }
}
