import { isCallable, signing } from "./callbacks.ts"
import type { Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (status: number, title: string, detail: string): Reply => ({
  status,
  json: { title, detail, status }
})

const prediction = (upstream: Upstream, id: string, fields: object): Reply => ({
  status: 200,
  json: {
    id,
    version: "hidden",
    logs: "",
    urls: {
      get: `${upstream.url}/v1/predictions/${id}`,
      cancel: `${upstream.url}/v1/predictions/${id}/cancel`
    },
    ...fields
  }
})

const current = (upstream: Upstream, id: string): Reply => {
  const found = upstream.poll(id)
  if (found === undefined)
    return failure(404, "Not found", "The requested resource could not be found.")
  const { isRunning, job } = found
  if (job.isCancelled)
    return prediction(upstream, id, { status: "canceled", output: null, error: null })
  if (isRunning) {
    return prediction(upstream, id, {
      status: job.polls === 1 ? "starting" : "processing",
      output: null
    })
  }
  if (upstream.ending === "failed") {
    return prediction(upstream, id, { status: "failed", error: "CUDA out of memory", output: null })
  }
  if (upstream.ending === "content") {
    return prediction(upstream, id, {
      status: "failed",
      error: "NSFW content detected.",
      output: null
    })
  }
  const output = Array.from(
    { length: upstream.made(job) },
    (_, n) => `${upstream.url}/results/${id}-${n}.png`
  )
  return prediction(upstream, id, { status: "succeeded", output, error: null, metrics: {} })
}

const list = ({ query }: Seen, upstream: Upstream): Reply => {
  const all = upstream.listedJobs.toReversed()
  const at = Number(query.get("cursor") ?? 0)
  const next = at + upstream.pageSize
  const results = all.slice(at, next).map(({ body, createdAt, id, path }) => ({
    id,
    created_at: new Date(createdAt).toISOString(),
    source: "api",
    status: "starting",
    model: /^\/v1\/models\/(.+)\/predictions$/u.exec(path)?.[1] ?? null,
    version: body.version ?? "hidden",
    input: body.input
  }))
  const url = next < all.length ? `${upstream.url}/v1/predictions?cursor=${next}` : null
  return { status: 200, json: { previous: null, next: url, results } }
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
      const { id } = upstream.buy(seen, "p", seen.json.input.num_outputs ?? 1)
      return { ...prediction(upstream, id, { status: "starting", output: null }), status: 201 }
    }
    if (seen.path === "/v1/predictions") return list(seen, upstream)
    const [, id = "", verb] = /^\/v1\/predictions\/([^/]+)(?:\/(cancel))?$/u.exec(seen.path) ?? []
    if (id === "") return undefined
    const job = upstream.jobs.get(id)
    if (verb === "cancel" && job !== undefined) {
      job.isCancelled = true
      return prediction(upstream, id, { status: "canceled", output: null })
    }
    return current(upstream, id)
  }
}
