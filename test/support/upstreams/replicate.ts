import { isCallable, signing } from "./callbacks.ts"
import type { Job, Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (status: number, title: string, detail: string): Reply => ({
  status,
  json: { title, detail, status }
})

/** What was asked for, by each of the paths. */
const target = ({ body, path }: Job) => {
  const [, kind, name] = /^\/v1\/(models|deployments)\/(.+)\/predictions$/u.exec(path) ?? []
  const [model, version] = String(body?.version ?? "").split(":")
  if (kind === "deployments") return { model: "acme/hidden", version: "hidden", deployment: name }
  if (kind === "models") return { model: name, version: "hidden" }
  if (version !== undefined) return { model, version }
  return model?.includes("/") === true
    ? { model, version: "hidden" }
    : { model: "owner/community", version: model }
}

const stamp = (millis: number) => new Date(millis).toISOString()

/** A prediction with every member that the vendor always writes. */
const prediction = (upstream: Upstream, job: Job, fields: object): object => ({
  id: job.id,
  ...target(job),
  input: job.body?.input ?? {},
  logs: "",
  output: null,
  error: null,
  source: "api",
  data_removed: false,
  created_at: stamp(job.createdAt),
  ...(job.body?.webhook === undefined ? {} : { webhook: job.body.webhook }),
  urls: {
    get: `${upstream.url}/v1/predictions/${job.id}`,
    cancel: `${upstream.url}/v1/predictions/${job.id}/cancel`,
    web: `https://replicate.com/p/${job.id}`
  },
  ...fields
})

const ended = (upstream: Upstream, job: Job, fields: object): object =>
  prediction(upstream, job, {
    started_at: stamp(job.createdAt),
    completed_at: stamp(job.createdAt + 1000),
    metrics: { predict_time: 0.9, total_time: 1 },
    ...fields
  })

const finished = (upstream: Upstream, job: Job): object => {
  if (upstream.ending === "failed") {
    return ended(upstream, job, { status: "failed", error: "CUDA out of memory" })
  }
  if (upstream.ending === "content") {
    return ended(upstream, job, { status: "failed", error: "NSFW content detected." })
  }
  const isVideo = /video/u.test(job.path)
  const urls = Array.from(
    { length: upstream.made(job) },
    (_, n) => `${upstream.url}/results/${job.id}-${n}.${isVideo ? "mp4" : "png"}`
  )
  // Each model has an output schema of its own: one address for a video, a list for pictures
  return ended(upstream, job, { status: "succeeded", output: isVideo ? urls[0] : urls })
}

const current = (upstream: Upstream, id: string): Reply => {
  const found = upstream.poll(id)
  if (found === undefined)
    return failure(404, "Not found", "The requested resource could not be found.")
  const { isRunning, job } = found
  if (job.isCancelled) return { status: 200, json: ended(upstream, job, { status: "canceled" }) }
  if (!isRunning) return { status: 200, json: finished(upstream, job) }
  const status = job.polls === 1 ? "starting" : "processing"
  return { status: 200, json: prediction(upstream, job, { status }) }
}

const list = ({ query }: Seen, upstream: Upstream): Reply => {
  const all = upstream.listedJobs.toReversed()
  const at = Number(query.get("cursor") ?? 0)
  const next = at + upstream.pageSize
  const results = all
    .slice(at, next)
    .map((job) => prediction(upstream, job, { status: job.isCancelled ? "canceled" : "starting" }))
  const url = next < all.length ? `${upstream.url}/v1/predictions?cursor=${next}` : null
  return { status: 200, json: { previous: null, next: url, results } }
}

const file = ({ form }: Seen, upstream: Upstream): Reply => {
  const [content] = form.get("content") ?? []
  if (content?.fileName === undefined) {
    return failure(422, "Invalid file", 'Missing or invalid "content"')
  }
  const url = `${upstream.url}/v1/files/${content.text.length}-${content.fileName}`
  const { text, type } = content
  return {
    status: 201,
    json: { id: "f", content_type: type, size: text.length, urls: { get: url } }
  }
}

const isSubmit = ({ method, path }: Seen) => method === "POST" && path.endsWith("/predictions")

/** docs/reference/vendors.md#replicate-predictions */
export const replicate: Protocol = {
  key: "r8_replicate_test_0001",
  refusals: {
    "429": failure(429, "Request was throttled.", "Expected available in 6 seconds."),
    unavailable: failure(503, "Service unavailable", "Please try again"),
    operator: failure(
      402,
      "Insufficient credit",
      "You have insufficient credit to run this model."
    ),
    content: failure(422, "Blocked", "The prompt was flagged as sensitive (E005)"),
    client: failure(422, "Input validation failed", "- input.width: must be an integer"),
    media: failure(422, "Input validation failed", "Failed to download the input image")
  },
  isSubmit,
  respond: (seen, upstream) => {
    if (seen.headers.authorization !== `Bearer ${upstream.key}`) {
      return failure(401, "Unauthenticated", "You did not pass a valid authentication token")
    }
    if (seen.path === "/v1/webhooks/default/secret") {
      return { status: 200, json: { key: signing.replicate } }
    }
    if (seen.path === "/v1/account") {
      return { status: 200, json: { type: "organization", username: "acme", name: "Acme" } }
    }
    if (isSubmit(seen)) {
      const { webhook = "https://", webhook_events_filter: filter = [] } = seen.json ?? {}
      if (!isCallable(webhook)) {
        return failure(422, "Input validation failed", "- webhook: must be an HTTPS URL")
      }
      if (!filter.every((it: string) => /^(?:start|output|logs|completed)$/u.test(it))) {
        return failure(422, "Input validation failed", "- webhook_events_filter: unknown event")
      }
      const needsVersion = seen.path === "/v1/predictions"
      if (needsVersion !== (typeof seen.json?.version === "string")) {
        return failure(422, "Input validation failed", "- version is required")
      }
      if (typeof seen.json.input?.prompt !== "string") {
        return failure(422, "Input validation failed", "- input: prompt is required")
      }
      const job = upstream.buy(seen, "p", seen.json.input.num_outputs ?? 1)
      // The vendor holds its response until the job has ended, for a minute at most
      if (!String(seen.headers["prefer"] ?? "").startsWith("wait")) {
        return { status: 201, json: prediction(upstream, job, { status: "starting" }) }
      }
      job.polls = upstream.runningPolls
      return { status: 201, json: finished(upstream, job) }
    }
    if (seen.method === "POST" && seen.path === "/v1/files") return file(seen, upstream)
    if (seen.path === "/v1/predictions") return list(seen, upstream)
    const [, id = "", verb] = /^\/v1\/predictions\/([^/]+)(?:\/(cancel))?$/u.exec(seen.path) ?? []
    if (id === "") return undefined
    const job = upstream.jobs.get(id)
    if (verb === "cancel" && job !== undefined) {
      job.isCancelled = true
      return { status: 200, json: ended(upstream, job, { status: "canceled" }) }
    }
    return current(upstream, id)
  }
}
