import { falJwks, isCallable } from "./callbacks.ts"
import type { Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (status: number, detail: unknown): Reply => ({ status, json: { detail } })

const urlsOf = (upstream: Upstream, id: string) => {
  const own = `${upstream.url}/fal-ai/flux/requests/${id}`
  return { response_url: own, status_url: `${own}/status`, cancel_url: `${own}/cancel` }
}

const response = (upstream: Upstream, id: string): Reply => {
  const job = upstream.jobs.get(id)
  if (job === undefined) return failure(404, "Request not found")
  switch (upstream.ending) {
    case "failed":
      return failure(500, "Internal server error")
    case "content":
      return failure(422, [
        {
          loc: ["body", "prompt"],
          msg: "Flagged by a content checker.",
          type: "content_policy_violation"
        }
      ])
    default: {
      const images = Array.from({ length: upstream.made(job) }, (_, n) => ({
        url: `${upstream.url}/results/${id}-${n}.png`,
        content_type: "image/png",
        width: 1024,
        height: 768
      }))
      return { status: 200, json: { images, seed: 1, prompt: "p", has_nsfw_concepts: [false] } }
    }
  }
}

const isSubmit = ({ method, path }: Seen) => method === "POST" && !path.includes("/requests/")

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
    if (isSubmit(seen)) {
      if (typeof seen.json?.prompt !== "string") {
        return failure(422, [{ loc: ["body", "prompt"], msg: "field required", type: "missing" }])
      }
      if (!isCallable(seen.query.get("fal_webhook") ?? "https://")) {
        return failure(422, [{ loc: ["query", "fal_webhook"], msg: "invalid url", type: "url" }])
      }
      const { id } = upstream.buy(seen, "", seen.json.num_images ?? 1)
      return {
        status: 200,
        json: { request_id: id, status: "IN_QUEUE", queue_position: 0, ...urlsOf(upstream, id) }
      }
    }
    const [, id = "", verb] = /\/requests\/([^/]+)(?:\/(\w+))?$/u.exec(seen.path) ?? []
    if (id === "") return undefined
    if (verb === undefined) return response(upstream, id)
    const job = upstream.jobs.get(id)
    if (verb === "cancel" && seen.method === "PUT") {
      return job === undefined || job.polls > upstream.runningPolls
        ? { status: 400, json: { status: "ALREADY_COMPLETED" } }
        : { status: 202, json: { status: "CANCELLATION_REQUESTED" } }
    }
    const found = upstream.poll(id)
    if (found === undefined) return failure(404, "Request not found")
    const status = found.isRunning
      ? found.job.polls === 1
        ? "IN_QUEUE"
        : "IN_PROGRESS"
      : "COMPLETED"
    return {
      status: found.isRunning ? 202 : 200,
      json: { status, request_id: id, ...urlsOf(upstream, id) }
    }
  }
}
