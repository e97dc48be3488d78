import { pixel } from "./Upstream.ts"
import type { Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (status: number, type: string, code: string | null, message: string): Reply => ({
  status,
  headers: { "x-request-id": "req_1" },
  json: { error: { message, type, param: null, code } }
})

const invalid = (message: string) => failure(400, "invalid_request_error", "invalid_value", message)

const videoOf = (upstream: Upstream, id: string): Reply => {
  const found = upstream.poll(id)
  if (found === undefined) {
    return failure(404, "invalid_request_error", null, `Video with id '${id}' not found.`)
  }
  const { isRunning, job } = found
  const video = (status: string, error: object | null = null) => ({
    status: 200,
    json: {
      id,
      object: "video",
      model: job.body?.model ?? "sora-2",
      status,
      progress: isRunning ? 10 : 100,
      created_at: Math.floor(job.createdAt / 1000),
      prompt: job.body?.prompt ?? null,
      error
    }
  })
  if (isRunning) return video(job.polls === 1 ? "queued" : "in_progress")
  if (upstream.ending === "failed")
    return video("failed", { code: "server_error", message: "oops" })
  if (upstream.ending === "content") {
    return video("failed", { code: "moderation_blocked", message: "Your request was blocked." })
  }
  return video("completed")
}

const images = (seen: Seen, upstream: Upstream): Reply => {
  const type = seen.headers["content-type"] ?? ""
  const isEdit = seen.path.endsWith("/edits")
  if (isEdit !== type.startsWith("multipart/form-data")) return invalid("Unsupported content type")
  const form = seen.bytes.toString("latin1")
  if (isEdit && !form.includes('name="image[]"'))
    return invalid("Missing required parameter: 'image'.")
  const size = isEdit ? /name="size"\r\n\r\n(\S+)/u.exec(form)?.[1] : seen.json.size
  if (!["1024x1024", "1536x1024", "1024x1536", "auto"].includes(size)) return invalid("size")
  const n = isEdit ? Number(/name="n"\r\n\r\n(\d+)/u.exec(form)?.[1]) : seen.json.n
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
  const job = upstream.buy(seen, "img_", n)
  const data = Array.from({ length: upstream.made(job) }, () => ({
    b64_json: pixel.toString("base64")
  }))
  return { status: 200, json: { created: 1, data, output_format: "png", usage: {} } }
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
    if (isSubmit(seen) && seen.path !== "/v1/videos") return images(seen, upstream)
    if (isSubmit(seen)) {
      const form = seen.bytes.toString("latin1")
      const field = (name: string) =>
        seen.json?.[name] ?? new RegExp(`name="${name}"\\r\\n\\r\\n(\\S+)`, "u").exec(form)?.[1]
      if (!["4", "8", "12"].includes(field("seconds"))) return invalid("seconds")
      if (!/^(?:1280x720|720x1280|1792x1024|1024x1792)$/u.test(field("size")))
        return invalid("size")
      const { id } = upstream.buy(seen, "video_")
      const created = { id, object: "video", status: "queued", model: field("model"), progress: 0 }
      return { status: 200, json: { ...created, created_at: 1, error: null } }
    }
    if (seen.path === "/v1/videos") {
      const all = upstream.listedJobs.toReversed()
      const after = all.findIndex(({ id }) => id === seen.query.get("after")) + 1
      const data = all.slice(after, after + upstream.pageSize).map(({ body, createdAt, id }) => ({
        id,
        object: "video",
        status: "queued",
        model: body.model,
        prompt: body.prompt,
        created_at: Math.floor(createdAt / 1000)
      }))
      const more = after + upstream.pageSize < all.length
      return { status: 200, json: { object: "list", data, has_more: more } }
    }
    const [, id = "", content] = /^\/v1\/videos\/([^/]+)(\/content)?$/u.exec(seen.path) ?? []
    if (id === "") return undefined
    if (content === undefined) return videoOf(upstream, id)
    return upstream.isResultGone
      ? failure(404, "invalid_request_error", null, "expired")
      : { status: 200, media: { type: "video/mp4", ...upstream.media } }
  }
}
