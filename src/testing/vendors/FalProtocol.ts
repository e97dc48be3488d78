import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import { falHeaders, falJwks, isCallable } from "./Callbacks.ts"
import type { Callback, Ending, Job, MadeFile, Protocol, Reply, Vendor } from "./Protocol.ts"
import { countAt, textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

const failure = (status: number, detail: unknown): Reply => ({ status, json: { detail } })

const invalid = (type: string, msg: string, ...loc: ReadonlyArray<string>): Reply =>
  failure(422, [{ loc: ["body", ...loc], msg, type }])

/** The queue's URLs of a job, which are below its app: the first two segments of the endpoint. */
const urlsOf = (vendor: Vendor, { id, path }: Job) => {
  const own = `${vendor.url}${path.split("/").slice(0, 3).join("/")}/requests/${id}`
  return { response_url: own, status_url: `${own}/status`, cancel_url: `${own}/cancel` }
}

/** The `type` of a failure and its status, by class. docs/reference/vendors.md#fal-errors */
const failures: ReadonlyMap<VendorErrorClass, readonly [type: string, status: number]> = new Map([
  ["CONTENT", ["content_policy_violation", 422]],
  ["MEDIA", ["file_download_error", 422]],
  ["FATAL_CLIENT", ["value_error", 422]],
  ["TIMEOUT", ["generation_timeout", 504]],
  ["FAILED", ["internal_server_error", 500]]
])

/** The output of a job. A failed job has its failure instead. */
const outputOf = (job: Job, ending: Ending): Reply => {
  const headers = { "x-fal-request-id": job.id }
  if (job.isCancelled) {
    const [error_type, detail] = ["client_cancelled", "Request was cancelled"]
    const json = { detail, error_type }
    return { status: 499, headers: { ...headers, "x-fal-error-type": error_type }, json }
  }
  if (ending._tag === "Failed") {
    const [type, status] = failures.get(ending.kind) ?? ["internal_server_error", 500]
    const reply =
      status >= 500
        ? failure(status, ending.message ?? "Internal server error")
        : invalid(type, ending.message ?? "Flagged by a content checker.", "prompt")
    return { ...reply, headers: { ...headers, "x-fal-error-type": type } }
  }
  const { files, isFlagged } = ending
  const flags = isFlagged === true ? { has_nsfw_concepts: files.map((_, n) => n === 0) } : {}
  const echo = { seed: 1, prompt: textAt(job.body, "prompt") }
  return { status: 200, headers, json: { ...mediaOf(job, files), ...echo, ...flags } }
}

const isVideo = ({ path }: Job) => /veo|video|kling/u.test(path)

const fileOf = ({ mime, url }: MadeFile) => ({
  url,
  content_type: mime,
  file_name: `output${/\.\w+$/u.exec(url)?.[0] ?? ""}`
})

/** The media as in the vendor's schemas: `video.url`, `audio.url`, `images[].url`. */
const mediaOf = (job: Job, files: ReadonlyArray<MadeFile>): object => {
  const [first] = files
  if (isVideo(job) || first?.mime.startsWith("video/") === true) {
    return first === undefined ? {} : { video: fileOf(first) }
  }
  if (first?.mime.startsWith("audio/") === true) return { audio: fileOf(first) }
  return {
    images: files.map((file) => ({ ...fileOf(file), width: 1024, height: 768 })),
    has_nsfw_concepts: files.map(() => false),
    timings: { inference: 1.5 }
  }
}

const endingOf = (vendor: Vendor, job: Job): Ending =>
  vendor.endingOf(job, isVideo(job) ? "video" : "image")

const isSubmit = ({ method, path }: VendorRequest) =>
  method === "POST" && !path.includes("/requests/")

/** Stands for the host `fal.run`, which returns the result directly. */
const syncPrefix = "/sync/"

const submit = async (request: VendorRequest, vendor: Vendor): Promise<Reply> => {
  const { json, path, query } = request
  if (textAt(json, "prompt") === undefined) return invalid("missing", "field required", "prompt")
  if (!isCallable(query.get("fal_webhook") ?? "https://")) {
    return failure(422, [{ loc: ["query", "fal_webhook"], msg: "invalid url", type: "url" }])
  }
  const callbackUrl = query.get("fal_webhook") ?? undefined
  const job = vendor.buy(request, { count: countAt(json, "num_images"), callbackUrl })
  if (path.startsWith(syncPrefix)) {
    await vendor.ended(job)
    return outputOf(job, endingOf(vendor, job))
  }
  return {
    status: 200,
    headers: { "x-fal-request-id": job.id },
    json: { request_id: job.id, status: "IN_QUEUE", queue_position: 0, ...urlsOf(vendor, job) }
  }
}

const unknown = failure(404, "Request not found")

const statusOf = (vendor: Vendor, id: string): Reply => {
  const job = vendor.poll(id)
  if (job === undefined) return unknown
  const common = { request_id: id, ...urlsOf(vendor, job) }
  if (!vendor.isRunning(job)) {
    const metrics = { inference_time: 1.5 }
    return { status: 200, json: { status: "COMPLETED", ...common, logs: [], metrics } }
  }
  return {
    status: 202,
    json:
      job.polls === 1
        ? { status: "IN_QUEUE", ...common, queue_position: 0 }
        : { status: "IN_PROGRESS", ...common, logs: [] }
  }
}

/** The result. Clients that skip the status poll here until the job has ended. */
const resultOf = (vendor: Vendor, id: string): Reply => {
  const known = vendor.jobs.get(id)
  const job = known === undefined || vendor.isRunning(known) ? vendor.poll(id) : known
  if (job === undefined) return unknown
  return vendor.isRunning(job)
    ? failure(400, "Request is still in progress")
    : outputOf(job, endingOf(vendor, job))
}

const callback = (job: Job, vendor: Vendor, atMillis: number): Callback => {
  const { json: payload, status } = outputOf(job, endingOf(vendor, job))
  const body = JSON.stringify({
    request_id: job.id,
    gateway_request_id: job.id,
    ...(status === 200 ? { status: "OK" } : { status: "ERROR", error: `Status ${status}` }),
    payload
  })
  return { body, headers: falHeaders({ at: Math.floor(atMillis / 1000), body, id: job.id }) }
}

/** fal's queue. docs/reference/vendors.md#fal-queue */
export const fal: Protocol = {
  key: "fal-test-id-0001:secret-0001",
  isSubmit,
  modelOf: ({ path }) => (path.startsWith(syncPrefix) ? path.slice(6) : path.slice(1)),
  stranger: ({ headers, path }, key) =>
    path === "/.well-known/jwks.json" || headers.authorization === `Key ${key}`
      ? undefined
      : failure(401, "Cannot access application: authentication is required"),
  refusal: (kind, message) => {
    switch (kind) {
      case "RATE_LIMITED":
        return failure(429, message ?? "Too many requests")
      case "RETRYABLE":
        return failure(503, message ?? "No runner available")
      case "OPERATOR":
        return failure(403, `User is locked. Reason: ${message ?? "Exhausted balance."}`)
      case "GONE":
        return failure(404, { error: "EndpointDeprecated", message: message ?? "It has ended." })
      case "CONTENT":
        return invalid("content_policy_violation", message ?? "Blocked")
      case "FATAL_CLIENT":
        return invalid("value_error", message ?? "not permitted", "image_size")
      case "MEDIA":
        return invalid("file_download_error", message ?? "Failed to download")
      default:
        return undefined
    }
  },
  jobFailures: new Set([...failures.keys(), "LOST"]),
  callback,
  respond: (request, vendor) => {
    const { method, path } = request
    if (path === "/.well-known/jwks.json") return { status: 200, json: falJwks() }
    if (isSubmit(request)) return submit(request, vendor)
    const [, id = "", verb] = /\/requests\/([^/]+)(?:\/(\w+))?$/u.exec(path) ?? []
    if (id === "") return undefined
    if (verb === "status") return statusOf(vendor, id)
    if (verb === undefined) return resultOf(vendor, id)
    if (verb !== "cancel" || method !== "PUT") return undefined
    const job = vendor.jobs.get(id)
    if (job === undefined) return { status: 404, json: { status: "NOT_FOUND" } }
    if (!vendor.isRunning(job)) return { status: 400, json: { status: "ALREADY_COMPLETED" } }
    job.isCancelled = true
    return { status: 202, json: { status: "CANCELLATION_REQUESTED" } }
  }
}
