import type { Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (status: number, code: string, message: string): Reply => ({
  status,
  json: { code, message, request_id: "4909100c-7b5a-9f92-bfe5-000000000000" }
})

const base = "/api/v1"
const aigc = `${base}/services/aigc`
const asyncPaths: Readonly<Record<string, RegExp>> = {
  [`${aigc}/video-generation/video-synthesis`]: /^wan2\.[567]-(?:t2v|i2v|r2v)|^wan3|vace/u,
  [`${aigc}/image2video/video-synthesis`]: /kf2v/u,
  [`${aigc}/text2image/image-synthesis`]: /t2i/u,
  [`${aigc}/image2image/image-synthesis`]: /i2i/u
}
const syncPath = `${aigc}/multimodal-generation/generation`
const syncModels = /^(?:qwen-image(?:-edit)?-max|wan2\.6-t2i|z-image-turbo)/u

const fits = (text: unknown, most: number) => typeof text === "string" && text.length <= most

/** An address, a data URI, or Base64 alone, as the AI SDK sends it. */
const isPicture = (text: unknown) =>
  typeof text === "string" && /^(?:https?:|oss:|data:|[A-Za-z0-9+/]{16,}=*$)/u.test(text)

/** From wan2.7 on: tiers and a ratio in place of a size, media in place of single addresses. */
const faultOfTiers = ({ input, model, parameters = {} }: Seen["json"]): Reply | undefined => {
  const invalid = (what: string) => failure(400, "InvalidParameter", what)
  if ("size" in parameters) return invalid("size is not supported by this model")
  if (!/^(?:480P|720P|1080P)$/u.test(parameters.resolution ?? "720P")) return invalid("resolution")
  if (!/^(?:16:9|9:16|1:1|4:3|3:4)$/u.test(parameters.ratio ?? "16:9")) return invalid("ratio")
  const { media = [] } = input
  if (!media.every(({ url }: { url: unknown }) => isPicture(url))) return invalid("media")
  const hasPicture = media.length > 0 || isPicture(input.img_url)
  return /i2v|r2v/u.test(model) && !hasPicture ? invalid("media is required") : undefined
}

/** What the vendor refuses of a body: only what it documents. */
const fault = ({ json, path }: Seen): Reply | undefined => {
  const invalid = (what: string) => failure(400, "InvalidParameter", what)
  if (typeof json?.model !== "string" || typeof json.input !== "object") {
    return invalid("Required body invalid, please check the request body format.")
  }
  const models = path === syncPath ? syncModels : asyncPaths[path]
  if (models?.test(json.model) !== true) {
    return failure(404, "ModelNotFound", `Model can not be found: ${json.model}`)
  }
  if (path === syncPath) {
    const content = json.input.messages?.[0]?.content
    const isFine =
      Array.isArray(content) &&
      content.filter((it: object) => "text" in it).length === 1 &&
      content.every((it: { image?: string; text?: string }) => fits(it.image ?? it.text, 1e8))
    return isFine ? undefined : invalid("messages content must hold exactly one text")
  }
  if (!fits(json.input.prompt, 4000)) return invalid("prompt is required")
  if (/kf2v/u.test(json.model) && !/^(?:https?|oss):/u.test(json.input.first_frame_url ?? "")) {
    return failure(400, "InvalidURL", "first_frame_url must be a URL")
  }
  if (/^wan(?:2\.7|3)/u.test(json.model)) return faultOfTiers(json)
  if (/i2v/u.test(json.model) && !isPicture(json.input.img_url)) {
    return failure(400, "InvalidURL", "img_url must be a URL")
  }
  if (/r2v/u.test(json.model) && !Array.isArray(json.input.reference_urls)) {
    return invalid("reference_urls")
  }
  if (/i2i/u.test(json.model) && !Array.isArray(json.input.images)) return invalid("images")
  return undefined
}

const uses = (json: unknown) => JSON.stringify(json).includes("oss://")

const submit = (seen: Seen, upstream: Upstream): Reply => {
  const isAsync = seen.headers["x-dashscope-async"] === "enable"
  if (seen.path === syncPath && isAsync) {
    return failure(403, "AccessDenied", "Current user api does not support asynchronous calls.")
  }
  if (seen.path !== syncPath && !isAsync) {
    return failure(403, "AccessDenied", "Current user api does not support synchronous calls.")
  }
  const refused = fault(seen)
  if (refused !== undefined) return refused
  if (uses(seen.json) && seen.headers["x-dashscope-ossresourceresolve"] !== "enable") {
    return failure(400, "InvalidURL", "oss:// needs X-DashScope-OssResourceResolve")
  }
  const job = upstream.buy(seen, "", seen.json.parameters?.n ?? 1)
  if (seen.path !== syncPath) {
    return {
      status: 200,
      json: { output: { task_status: "PENDING", task_id: job.id }, request_id: "4909100c" }
    }
  }
  const made = upstream.made(job)
  const content = urls(upstream, job.id, made, "png").map((image) => ({ image }))
  return {
    status: 200,
    json: {
      output: {
        choices: [{ finish_reason: "stop", message: { role: "assistant", content } }],
        task_metric: { TOTAL: job.count, SUCCEEDED: made, FAILED: job.count - made }
      },
      usage: { image_count: made, width: 1664, height: 928 },
      request_id: "4909100c"
    }
  }
}

const urls = (upstream: Upstream, id: string, count: number, ext: string) =>
  Array.from({ length: count }, (_, n) => `${upstream.url}/results/${id}-${n}.${ext}?Expires=1`)

const task = (id: string, upstream: Upstream): Reply => {
  const output = (fields: object, usage: object = {}) => ({
    status: 200,
    json: { request_id: "r-1", output: { task_id: id, ...fields }, ...usage }
  })
  const found = upstream.poll(id)
  if (found === undefined) return output({ task_status: "UNKNOWN" })
  const { isRunning, job } = found
  if (job.isCancelled) return output({ task_status: "CANCELED" })
  if (isRunning) return output({ task_status: job.polls === 1 ? "PENDING" : "RUNNING" })
  if (upstream.ending === "failed") {
    return output({ task_status: "FAILED", code: "InternalError.Algo", message: "inference error" })
  }
  if (upstream.ending === "content") {
    return output({ task_status: "FAILED", code: "DataInspectionFailed", message: "Blocked." })
  }
  if (
    /video-synthesis/u.test(String(job.body?.input?.img_url)) ||
    /2v|vace|^wan3/u.test(job.body.model)
  ) {
    const [video_url] = urls(upstream, id, upstream.made(job), "mp4")
    const seconds = { duration: 5, output_video_duration: 5, video_count: 1 }
    const usage = { usage: { ...seconds, video_duration: 5, video_ratio: "standard", SR: 720 } }
    const prompts = { orig_prompt: job.body.input.prompt, actual_prompt: job.body.input.prompt }
    const times = { submit_time: clock(job.createdAt), end_time: clock(job.createdAt + 1000) }
    const done = { task_status: "SUCCEEDED", ...times, ...prompts }
    return output({ ...done, ...(video_url ? { video_url } : {}) }, usage)
  }
  const made = urls(upstream, id, upstream.made(job), "png")
  const failed = Array.from({ length: job.count - made.length }, () => ({
    code: "DataInspectionFailed",
    message: "Output data may contain inappropriate content."
  }))
  return output(
    {
      task_status: "SUCCEEDED",
      results: [...made.map((url) => ({ url, orig_prompt: job.body.input.prompt })), ...failed],
      task_metrics: { TOTAL: job.count, SUCCEEDED: made.length, FAILED: failed.length }
    },
    { usage: { image_count: made.length } }
  )
}

/** China's time, without an offset. */
const clock = (millis: number) =>
  new Date(millis + 8 * 3_600_000).toISOString().slice(0, 23).replace("T", " ")

const stamp = (millis: number) => clock(millis).slice(0, 19).replaceAll(/\D/gu, "")

const list = ({ query }: Seen, upstream: Upstream): Reply => {
  const all = upstream.listedJobs
    .filter(({ body }) => body.model === query.get("model_name"))
    .filter(({ createdAt }) => stamp(createdAt) >= (query.get("start_time") ?? ""))
    .filter(({ createdAt }) => stamp(createdAt) <= (query.get("end_time") ?? ""))
    .map(({ body, createdAt, id, polls }) => ({
      task_id: id,
      request_id: "r",
      model_name: body.model,
      status: polls < upstream.runningPolls ? "RUNNING" : "SUCCEEDED",
      api_key_id: "1",
      gmt_create: createdAt
    }))
  const size = upstream.pageSize
  const page = Number(query.get("page_no"))
  return {
    status: 200,
    json: {
      total: all.length,
      data: all.slice((page - 1) * size, page * size),
      total_page: Math.ceil(all.length / size),
      page_no: page,
      page_size: size,
      request_id: "r"
    }
  }
}

const policy = (upstream: Upstream): Reply => ({
  status: 200,
  json: {
    request_id: "r",
    data: {
      policy: "cG9saWN5",
      signature: "sig",
      upload_dir: "dashscope-instant/1",
      upload_host: `${upstream.url}/oss`,
      expire_in_seconds: 300,
      max_file_size_mb: 100,
      oss_access_key_id: "LTAI",
      x_oss_object_acl: "private",
      x_oss_forbid_overwrite: "true"
    }
  }
})

const isSubmit = ({ method, path }: Seen) => method === "POST" && path.startsWith(aigc)

/** docs/reference/vendors.md#dashscope-wire-protocol, asynchronous and synchronous. */
export const dashscope: Protocol = {
  key: "sk-dashscope-test-0001",
  refusals: {
    "429": failure(
      429,
      "Throttling.RateQuota",
      "Requests rate limit exceeded, please try again later."
    ),
    unavailable: failure(
      503,
      "ModelServingError",
      "Too many requests. Your requests are being throttled."
    ),
    operator: failure(
      400,
      "Arrearage",
      "Access denied, please make sure your account is in good standing."
    ),
    content: failure(400, "DataInspectionFailed", "Input data may contain inappropriate content."),
    client: failure(400, "InvalidParameter", "size must be in the list"),
    media: failure(400, "InvalidParameter.DataInspection", "Unable to download the media resource")
  },
  isSubmit,
  respond: (seen, upstream) => {
    if (seen.path === "/oss") return { status: 200 }
    if (seen.headers.authorization !== `Bearer ${upstream.key}`) {
      return failure(401, "InvalidApiKey", "Invalid API-key provided.")
    }
    if (isSubmit(seen)) return submit(seen, upstream)
    if (seen.path === `${base}/uploads`) return policy(upstream)
    if (seen.path === `${base}/tasks/`) return list(seen, upstream)
    const [, id = "", verb] = /^\/api\/v1\/tasks\/([^/]+)(?:\/(cancel))?$/u.exec(seen.path) ?? []
    if (id === "") return undefined
    if (verb === undefined) return task(id, upstream)
    const job = upstream.jobs.get(id)
    if (job === undefined || job.polls > 0) {
      return failure(400, "UnsupportedOperation", "Failed to cancel the task: not PENDING")
    }
    job.isCancelled = true
    return { status: 200, json: { request_id: "r" } }
  }
}
