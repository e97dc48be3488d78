import { falJwks, isCallable } from "./callbacks.ts"
import type { Job, Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (status: number, detail: unknown): Reply => ({ status, json: { detail } })

/** The queue follows a job under its app: the first two segments of the endpoint. */
const urlsOf = (upstream: Upstream, { id, path }: Job) => {
  const own = `${upstream.url}${path.split("/").slice(0, 3).join("/")}/requests/${id}`
  return { response_url: own, status_url: `${own}/status`, cancel_url: `${own}/cancel` }
}

/** What the model made; a failed job has its failure in the place of the result. */
const outputOf = (upstream: Upstream, job: Job): Reply => {
  const headers = { "x-fal-request-id": job.id }
  switch (upstream.ending) {
    case "failed":
      return { ...failure(500, "Internal server error"), headers }
    case "content":
      return {
        ...failure(422, [
          {
            loc: ["body", "prompt"],
            msg: "Flagged by a content checker.",
            type: "content_policy_violation"
          }
        ]),
        headers
      }
    default: {
      const urls = Array.from(
        { length: upstream.made(job) },
        (_, n) => `${upstream.url}/results/${job.id}-${n}`
      )
      const echo = { seed: 1, prompt: job.body?.prompt }
      const flags =
        upstream.ending === "flagged" ? { has_nsfw_concepts: urls.map((_, n) => n === 0) } : {}
      return { status: 200, headers, json: { ...mediaOf(job.path, urls), ...echo, ...flags } }
    }
  }
}

/** By the vendor's own schemas: `video.url` for a video, `images[].url` for pictures. */
const mediaOf = (path: string, urls: ReadonlyArray<string>) =>
  /veo|video|kling/u.test(path)
    ? { video: { url: `${urls[0]}.mp4`, content_type: "video/mp4", file_name: "output.mp4" } }
    : {
        images: urls.map((url) => ({
          url: `${url}.png`,
          content_type: "image/png",
          file_name: "output.png",
          width: 1024,
          height: 768
        })),
        has_nsfw_concepts: urls.map(() => false),
        timings: { inference: 1.5 }
      }

const isSubmit = ({ method, path }: Seen) => method === "POST" && !path.includes("/requests/")

/** Stands for the other host, `fal.run`, which returns the result itself. */
const syncPrefix = "/sync/"

const submit = (seen: Seen, upstream: Upstream): Reply => {
  if (typeof seen.json?.prompt !== "string") {
    return failure(422, [{ loc: ["body", "prompt"], msg: "field required", type: "missing" }])
  }
  if (!isCallable(seen.query.get("fal_webhook") ?? "https://")) {
    return failure(422, [{ loc: ["query", "fal_webhook"], msg: "invalid url", type: "url" }])
  }
  const job = upstream.buy(seen, "", seen.json.num_images ?? 1)
  if (seen.path.startsWith(syncPrefix)) return outputOf(upstream, job)
  return {
    status: 200,
    headers: { "x-fal-request-id": job.id },
    json: { request_id: job.id, status: "IN_QUEUE", queue_position: 0, ...urlsOf(upstream, job) }
  }
}

const statusOf = (upstream: Upstream, id: string): Reply => {
  const found = upstream.poll(id)
  if (found === undefined) return failure(404, "Request not found")
  const { isRunning, job } = found
  const common = { request_id: id, ...urlsOf(upstream, job) }
  if (!isRunning) {
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

/** Who does not ask for the status first asks here until the job has ended. */
const resultOf = (upstream: Upstream, id: string): Reply => {
  const known = upstream.jobs.get(id)
  if (known !== undefined && known.polls > upstream.runningPolls) return outputOf(upstream, known)
  const found = upstream.poll(id)
  if (found === undefined) return failure(404, "Request not found")
  return found.isRunning
    ? failure(400, "Request is still in progress")
    : outputOf(upstream, found.job)
}

/** docs/reference/vendors.md#fal-queue */
export const fal: Protocol = {
  key: "fal-test-id-0001:secret-0001",
  refusals: {
    "429": failure(429, "Too many requests"),
    unavailable: failure(503, "No runner available"),
    operator: failure(403, "User is locked. Reason: Exhausted balance."),
    content: failure(422, [{ loc: ["body"], msg: "Blocked", type: "content_policy_violation" }]),
    client: failure(422, [
      { loc: ["body", "image_size"], msg: "not permitted", type: "value_error" }
    ]),
    media: failure(422, [{ loc: ["body"], msg: "Failed to download", type: "file_download_error" }])
  },
  isSubmit,
  respond: (seen, upstream) => {
    if (seen.path === "/.well-known/jwks.json") return { status: 200, json: falJwks() }
    if (seen.headers.authorization !== `Key ${upstream.key}`) {
      return failure(401, "Cannot access application: authentication is required")
    }
    if (isSubmit(seen)) return submit(seen, upstream)
    const [, id = "", verb] = /\/requests\/([^/]+)(?:\/(\w+))?$/u.exec(seen.path) ?? []
    if (id === "") return undefined
    if (verb === "status") return statusOf(upstream, id)
    if (verb === undefined) return resultOf(upstream, id)
    if (verb !== "cancel" || seen.method !== "PUT") return undefined
    const job = upstream.jobs.get(id)
    return job === undefined || job.polls > upstream.runningPolls
      ? { status: 400, json: { status: "ALREADY_COMPLETED" } }
      : { status: 202, json: { status: "CANCELLATION_REQUESTED" } }
  }
}
