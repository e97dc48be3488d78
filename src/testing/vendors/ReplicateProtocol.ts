import { at } from "../../domain/json/Json.ts"
import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import { isCallable, replicateHeaders, signing } from "./Callbacks.ts"
import type { Job, Protocol, Reply, Vendor } from "./Protocol.ts"
import { countAt, listAt, textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

const failure = (status: number, title: string, detail: string): Reply => ({
  status,
  json: { title, detail, status }
})

const invalid = (detail: string) => failure(422, "Input validation failed", detail)

/** The model that the path names. */
const target = ({ body, path }: Job) => {
  const [, kind, name] = /^\/v1\/(models|deployments)\/(.+)\/predictions$/u.exec(path) ?? []
  const [model, version] = (textAt(body, "version") ?? "").split(":")
  if (kind === "deployments") return { model: "acme/hidden", version: "hidden", deployment: name }
  if (kind === "models") return { model: name, version: "hidden" }
  if (version !== undefined) return { model, version }
  return model?.includes("/") === true
    ? { model, version: "hidden" }
    : { model: "owner/community", version: model }
}

const stamp = (millis: number) => new Date(millis).toISOString()

/** A prediction with all members that the vendor always includes. */
const prediction = (vendor: Vendor, job: Job, fields: object): object => {
  const webhook = textAt(job.body, "webhook")
  return {
    id: job.id,
    ...target(job),
    input: at(job.body, "input") ?? {},
    logs: "",
    output: null,
    error: null,
    source: "api",
    data_removed: false,
    created_at: stamp(job.createdAt),
    ...(webhook === undefined ? {} : { webhook }),
    urls: {
      get: `${vendor.url}/v1/predictions/${job.id}`,
      cancel: `${vendor.url}/v1/predictions/${job.id}/cancel`,
      web: `https://replicate.com/p/${job.id}`
    },
    ...fields
  }
}

const ended = (vendor: Vendor, job: Job, fields: object): object =>
  prediction(vendor, job, {
    started_at: stamp(job.createdAt),
    completed_at: stamp(job.createdAt + 1000),
    metrics: { predict_time: 0.9, total_time: 1 },
    ...fields
  })

/**
 * The vendor's message for each class of failure. There are no codes, so the message identifies the class.
 * docs/reference/vendors.md#replicate-errors
 */
const failures: ReadonlyMap<VendorErrorClass, string> = new Map([
  ["CONTENT", "NSFW content detected."],
  ["MEDIA", "Failed to download the input image."],
  ["TIMEOUT", "Prediction timed out."],
  ["FAILED", "CUDA out of memory"]
])

/** The vendor's message, which identifies the class, followed by the test's own. */
const words = (own: string, message: string | undefined): string =>
  message === undefined ? own : `${own} ${message}`

const finished = (vendor: Vendor, job: Job): object => {
  const isVideo = /video/u.test(job.path)
  const ending = vendor.endingOf(job, isVideo ? "video" : "image")
  if (ending._tag === "Failed") {
    const own = failures.get(ending.kind) ?? "The model failed."
    const error = ending.kind === "FAILED" ? (ending.message ?? own) : words(own, ending.message)
    return ended(vendor, job, { status: "failed", error })
  }
  const urls = ending.files.map(({ url }) => url)
  const isOne = isVideo || ending.files[0]?.mime.startsWith("video/") === true
  // The output's schema depends on the model: one URL for a video, a list for images
  return ended(vendor, job, { status: "succeeded", output: isOne ? urls[0] : urls })
}

const current = (vendor: Vendor, id: string): Reply => {
  const job = vendor.poll(id)
  if (job === undefined) {
    return failure(404, "Not found", "The requested resource could not be found.")
  }
  if (job.isCancelled) return { status: 200, json: ended(vendor, job, { status: "canceled" }) }
  if (!vendor.isRunning(job)) return { status: 200, json: finished(vendor, job) }
  const status = job.polls === 1 ? "starting" : "processing"
  return { status: 200, json: prediction(vendor, job, { status }) }
}

const list = ({ query }: VendorRequest, vendor: Vendor): Reply => {
  const all = vendor.listedJobs.toReversed()
  const from = Number(query.get("cursor") ?? 0)
  const next = from + vendor.pageSize
  const results = all
    .slice(from, next)
    .map((job) => prediction(vendor, job, { status: job.isCancelled ? "canceled" : "starting" }))
  const url = next < all.length ? `${vendor.url}/v1/predictions?cursor=${next}` : null
  return { status: 200, json: { previous: null, next: url, results } }
}

const file = ({ form }: VendorRequest, vendor: Vendor): Reply => {
  const [content] = form.get("content") ?? []
  if (content?.fileName === undefined) {
    return failure(422, "Invalid file", 'Missing or invalid "content"')
  }
  const url = `${vendor.url}/v1/files/${content.text.length}-${content.fileName}`
  const { text, type } = content
  return {
    status: 201,
    json: { id: "f", content_type: type, size: text.length, urls: { get: url } }
  }
}

const isSubmit = ({ method, path }: VendorRequest) =>
  method === "POST" && path.endsWith("/predictions")

const events = /^(?:start|output|logs|completed)$/u

const submit = async (request: VendorRequest, vendor: Vendor): Promise<Reply> => {
  const { headers, json, path } = request
  if (!isCallable(textAt(json, "webhook") ?? "https://")) {
    return invalid("- webhook: must be an HTTPS URL")
  }
  const filter = listAt(json, "webhook_events_filter") ?? []
  if (!filter.every((it) => typeof it === "string" && events.test(it))) {
    return invalid("- webhook_events_filter: unknown event")
  }
  const needsVersion = path === "/v1/predictions"
  if (needsVersion !== (textAt(json, "version") !== undefined)) {
    return invalid("- version is required")
  }
  if (textAt(json, "input", "prompt") === undefined) return invalid("- input: prompt is required")
  const job = vendor.buy(request, {
    prefix: "p",
    count: countAt(json, "input", "num_outputs"),
    callbackUrl: textAt(json, "webhook")
  })
  // The vendor holds the response until the job has ended, for at most a minute
  if (!String(headers["prefer"] ?? "").startsWith("wait")) {
    return { status: 201, json: prediction(vendor, job, { status: "starting" }) }
  }
  await vendor.ended(job)
  return { status: 201, json: finished(vendor, job) }
}

/** Replicate's predictions. docs/reference/vendors.md#replicate-predictions */
export const replicate: Protocol = {
  key: "r8_replicate_test_0001",
  isSubmit,
  modelOf: ({ json, path }) =>
    /^\/v1\/models\/(.+)\/predictions$/u.exec(path)?.[1] ??
    /^\/v1\/(deployments\/.+)\/predictions$/u.exec(path)?.[1] ??
    textAt(json, "version") ??
    "",
  stranger: ({ headers }, key) =>
    headers.authorization === `Bearer ${key}`
      ? undefined
      : failure(401, "Unauthenticated", "You did not pass a valid authentication token"),
  refusal: (kind, message) => {
    switch (kind) {
      case "RATE_LIMITED":
        return failure(429, "Request was throttled.", message ?? "Expected available in 6 seconds.")
      case "RETRYABLE":
        return failure(503, "Service unavailable", message ?? "Please try again")
      case "OPERATOR":
        return failure(
          402,
          "Insufficient credit",
          words("You have insufficient credit to run this model.", message)
        )
      case "GONE":
        return invalid(words("The specified version does not exist.", message))
      case "CONTENT":
        return failure(
          422,
          "Blocked",
          words("The prompt was flagged as sensitive (E005).", message)
        )
      case "FATAL_CLIENT":
        return invalid(message ?? "- input.width: must be an integer")
      case "MEDIA":
        return invalid(words("Failed to download the input image.", message))
      default:
        return undefined
    }
  },
  jobFailures: new Set([...failures.keys(), "LOST"]),
  callback: (job, vendor, atMillis) => {
    const body = JSON.stringify(finished(vendor, job))
    const at = Math.floor(atMillis / 1000)
    return { body, headers: replicateHeaders({ at, body, id: job.id }) }
  },
  respond: (request, vendor) => {
    const { method, path } = request
    if (path === "/v1/webhooks/default/secret") {
      return { status: 200, json: { key: signing.replicate } }
    }
    if (path === "/v1/account") {
      return { status: 200, json: { type: "organization", username: "acme", name: "Acme" } }
    }
    if (isSubmit(request)) return submit(request, vendor)
    if (method === "POST" && path === "/v1/files") return file(request, vendor)
    if (path === "/v1/predictions") return list(request, vendor)
    const [, id = "", verb] = /^\/v1\/predictions\/([^/]+)(?:\/(cancel))?$/u.exec(path) ?? []
    if (id === "") return undefined
    const job = vendor.jobs.get(id)
    if (verb === "cancel" && job !== undefined && vendor.isRunning(job)) {
      job.isCancelled = true
      return { status: 200, json: ended(vendor, job, { status: "canceled" }) }
    }
    return current(vendor, id)
  }
}
