import { at } from "../../domain/json/Json.ts"
import { failure, invalid, jobFailure, jobFailures, refusal } from "./DashScopeFailure.ts"
import { filesOf } from "./Protocol.ts"
import type { Job, MadeFile, Protocol, Reply, Vendor } from "./Protocol.ts"
import { countAt, listAt, textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

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

const fits = (text: string | undefined, most: number) => text !== undefined && text.length <= most

/** Whether the text is a URL, a data URI, or plain Base64, which the AI SDK sends. */
const isPicture = (text: unknown) =>
  typeof text === "string" && /^(?:https?:|oss:|data:|[A-Za-z0-9+/]{16,}=*$)/u.test(text)

/** Since wan2.7, bodies have tiers and a ratio instead of a size, and a list of media instead of single URLs. */
const faultOfTiers = (json: unknown, model: string): Reply | undefined => {
  const {
    ratio = "16:9",
    resolution = "720P",
    size
  } = {
    size: at(json, "parameters", "size"),
    resolution: textAt(json, "parameters", "resolution"),
    ratio: textAt(json, "parameters", "ratio")
  }
  if (size !== undefined) return invalid("size is not supported by this model")
  if (!/^(?:480P|720P|1080P)$/u.test(resolution)) return invalid("resolution")
  if (!/^(?:16:9|9:16|1:1|4:3|3:4)$/u.test(ratio)) return invalid("ratio")
  const media = listAt(json, "input", "media") ?? []
  if (!media.every((it) => isPicture(at(it, "url")))) return invalid("media")
  const hasPicture = media.length > 0 || isPicture(at(json, "input", "img_url"))
  return /i2v|r2v/u.test(model) && !hasPicture ? invalid("media is required") : undefined
}

const isText = (content: unknown) => textAt(content, "text") !== undefined

/** The fault of a body that the vendor documents, if it has one. */
const fault = ({ json, path }: VendorRequest): Reply | undefined => {
  const model = textAt(json, "model")
  if (model === undefined || typeof at(json, "input") !== "object") {
    return invalid("Required body invalid, please check the request body format.")
  }
  const models = path === syncPath ? syncModels : asyncPaths[path]
  if (models?.test(model) !== true) {
    return failure(404, "ModelNotFound", `Model can not be found: ${model}`)
  }
  if (path === syncPath) {
    const content = listAt(json, "input", "messages", "0", "content") ?? []
    const isFine =
      content.filter(isText).length === 1 &&
      content.every((it) => fits(textAt(it, "image") ?? textAt(it, "text"), 1e8))
    return isFine ? undefined : invalid("messages content must hold exactly one text")
  }
  if (!fits(textAt(json, "input", "prompt"), 4000)) return invalid("prompt is required")
  const first = textAt(json, "input", "first_frame_url") ?? ""
  if (/kf2v/u.test(model) && !/^(?:https?|oss):/u.test(first)) {
    return failure(400, "InvalidURL", "first_frame_url must be a URL")
  }
  if (/^wan(?:2\.7|3)/u.test(model)) return faultOfTiers(json, model)
  if (/i2v/u.test(model) && !isPicture(at(json, "input", "img_url"))) {
    return failure(400, "InvalidURL", "img_url must be a URL")
  }
  if (/r2v/u.test(model) && listAt(json, "input", "reference_urls") === undefined) {
    return invalid("reference_urls")
  }
  return /i2i/u.test(model) && listAt(json, "input", "images") === undefined
    ? invalid("images")
    : undefined
}

const uses = (json: unknown) => JSON.stringify(json).includes("oss://")

const submit = async (request: VendorRequest, vendor: Vendor): Promise<Reply> => {
  const { headers, json, path } = request
  const isAsync = headers["x-dashscope-async"] === "enable"
  if (path === syncPath && isAsync) {
    return failure(403, "AccessDenied", "Current user api does not support asynchronous calls.")
  }
  if (path !== syncPath && !isAsync) {
    return failure(403, "AccessDenied", "Current user api does not support synchronous calls.")
  }
  const refused = fault(request)
  if (refused !== undefined) return refused
  if (uses(json) && headers["x-dashscope-ossresourceresolve"] !== "enable") {
    return failure(400, "InvalidURL", "oss:// needs X-DashScope-OssResourceResolve")
  }
  const job = vendor.buy(request, { count: countAt(json, "parameters", "n") })
  if (path === syncPath) return blocking(vendor, job)
  return {
    status: 200,
    json: { output: { task_status: "PENDING", task_id: job.id }, request_id: "4909100c" }
  }
}

const blocking = async (vendor: Vendor, job: Job): Promise<Reply> => {
  await vendor.ended(job)
  const ending = vendor.endingOf(job, "image")
  if (ending._tag === "Failed") {
    const { code, message } = jobFailure(ending.kind, ending.message)
    return failure(code.startsWith("Internal") ? 500 : 400, code, message)
  }
  const content = urls(vendor, ending.files).map((image) => ({ image }))
  const made = content.length
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

/** The URLs of results, which the vendor signs. */
const urls = (vendor: Vendor, files: ReadonlyArray<MadeFile>) =>
  files.map(({ url }) => (url.startsWith(vendor.url) ? `${url}?Expires=1` : url))

const isVideo = ({ path }: Job) => path.endsWith("/video-synthesis")

const task = (id: string, vendor: Vendor): Reply => {
  const output = (fields: object, usage: object = {}) => ({
    status: 200,
    json: { request_id: "r-1", output: { task_id: id, ...fields }, ...usage }
  })
  const job = vendor.poll(id)
  if (job === undefined) return output({ task_status: "UNKNOWN" })
  if (job.isCancelled) return output({ task_status: "CANCELED" })
  if (vendor.isRunning(job)) {
    return output({ task_status: job.polls === 1 ? "PENDING" : "RUNNING" })
  }
  const ending = vendor.endingOf(job, kindOf(job))
  if (ending._tag === "Failed") {
    return output({ task_status: "FAILED", ...jobFailure(ending.kind, ending.message) })
  }
  const made = urls(vendor, filesOf(ending))
  const prompt = textAt(job.body, "input", "prompt")
  if (isVideo(job)) {
    const [video_url] = made
    const seconds = { duration: 5, output_video_duration: 5, video_count: 1 }
    const usage = { usage: { ...seconds, video_duration: 5, video_ratio: "standard", SR: 720 } }
    const prompts = { orig_prompt: prompt, actual_prompt: prompt }
    const times = { submit_time: clock(job.createdAt), end_time: clock(job.createdAt + 1000) }
    const done = { task_status: "SUCCEEDED", ...times, ...prompts }
    return output({ ...done, ...(video_url === undefined ? {} : { video_url }) }, usage)
  }
  const failed = Array.from({ length: job.count - made.length }, () => ({
    code: "DataInspectionFailed",
    message: "Output data may contain inappropriate content."
  }))
  return output(
    {
      task_status: "SUCCEEDED",
      results: [...made.map((url) => ({ url, orig_prompt: prompt })), ...failed],
      task_metrics: { TOTAL: job.count, SUCCEEDED: made.length, FAILED: failed.length }
    },
    { usage: { image_count: made.length } }
  )
}

/** A time in China's time zone, without an offset. */
const clock = (millis: number) =>
  new Date(millis + 8 * 3_600_000).toISOString().slice(0, 23).replace("T", " ")

const stamp = (millis: number) => clock(millis).slice(0, 19).replaceAll(/\D/gu, "")

const kindOf = (job: Job) => (isVideo(job) ? "video" : "image")

const statusOf = (job: Job, vendor: Vendor) => {
  if (job.isCancelled) return "CANCELED"
  if (vendor.isRunning(job)) return job.polls === 0 ? "PENDING" : "RUNNING"
  return vendor.endingOf(job, kindOf(job))._tag === "Failed" ? "FAILED" : "SUCCEEDED"
}

const list = ({ query }: VendorRequest, vendor: Vendor): Reply => {
  const all = vendor.listedJobs
    .filter(({ model }) => model === query.get("model_name"))
    .filter(({ createdAt }) => stamp(createdAt) >= (query.get("start_time") ?? ""))
    .filter(({ createdAt }) => stamp(createdAt) <= (query.get("end_time") ?? ""))
    .map((job) => ({
      task_id: job.id,
      request_id: "r",
      model_name: job.model,
      status: statusOf(job, vendor),
      api_key_id: "1",
      gmt_create: job.createdAt
    }))
  const size = vendor.pageSize
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

/** The upload policy that the vendor returns. */
export const policy = (vendor: Pick<Vendor, "url">): Reply => ({
  status: 200,
  json: {
    request_id: "r",
    data: {
      policy: "cG9saWN5",
      signature: "sig",
      upload_dir: "dashscope-instant/1",
      upload_host: `${vendor.url}/oss`,
      expire_in_seconds: 300,
      max_file_size_mb: 100,
      oss_access_key_id: "LTAI",
      x_oss_object_acl: "private",
      x_oss_forbid_overwrite: "true"
    }
  }
})

const isSubmit = ({ method, path }: VendorRequest) => method === "POST" && path.startsWith(aigc)

/** Both asynchronous and synchronous calls. docs/reference/vendors.md#dashscope-wire-protocol */
export const dashscope: Protocol = {
  key: "sk-dashscope-test-0001",
  isSubmit,
  modelOf: ({ json }) => textAt(json, "model") ?? "",
  stranger: ({ headers, path }, key) =>
    path === "/oss" || headers.authorization === `Bearer ${key}`
      ? undefined
      : failure(401, "InvalidApiKey", "Invalid API-key provided."),
  refusal,
  jobFailures,
  respond: (request, vendor) => {
    const { path } = request
    if (path === "/oss") return { status: 200 }
    if (isSubmit(request)) return submit(request, vendor)
    if (path === `${base}/uploads`) return policy(vendor)
    if (path === `${base}/tasks/`) return list(request, vendor)
    const [, id = "", verb] = /^\/api\/v1\/tasks\/([^/]+)(?:\/(cancel))?$/u.exec(path) ?? []
    if (id === "") return undefined
    if (verb === undefined) return task(id, vendor)
    const job = vendor.jobs.get(id)
    if (job === undefined || job.polls > 0 || !vendor.isRunning(job)) {
      return failure(400, "UnsupportedOperation", "Failed to cancel the task: not PENDING")
    }
    job.isCancelled = true
    return { status: 200, json: { request_id: "r" } }
  }
}
