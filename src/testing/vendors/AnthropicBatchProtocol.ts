import { simulatedLine } from "../../sandbox/SimulatedBatch.ts"
import type { Job, Reply, Vendor } from "./Protocol.ts"
import { listAt, textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

export const isBatchCreate = ({ method, path }: VendorRequest): boolean =>
  method === "POST" && path === "/v1/messages/batches"

export const batchFailure = (status: number, type: string, message: string): Reply => ({
  status,
  headers: { "request-id": "req_1" },
  json: { type: "error", error: { type, message }, request_id: "req_1" }
})

/** The requests of each batch. */
const ordered = new WeakMap<Job, ReadonlyArray<unknown>>()

const isName = (value: unknown): boolean =>
  typeof value === "string" && /^[a-zA-Z0-9_-]{1,64}$/u.test(value)

/** Accepts a batch. */
export const submitBatch = (request: VendorRequest, vendor: Vendor): Reply => {
  const requests = listAt(request.json, "requests") ?? []
  const names = new Set(requests.map((it) => textAt(it, "custom_id")))
  if (requests.length === 0) return invalid("requests: Field required")
  if (names.size < requests.length || ![...names].every(isName)) {
    return invalid("requests.0.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'")
  }
  const job = vendor.buy(request, { prefix: "msgbatch_" })
  ordered.set(job, requests)
  return { status: 200, json: batchOf(job, vendor) }
}

const invalid = (message: string) => batchFailure(400, "invalid_request_error", message)
const missing = (id: string) => batchFailure(404, "not_found_error", `Batch ${id} not found`)

/**
 * The results of a batch so far; a cancelled one has half of them. A request's `custom_id` can make it fail or expire.
 */
const resultsOf = (job: Job) => {
  const all = ordered.get(job) ?? []
  const made = job.isCancelled ? Math.ceil(all.length / 2) : all.length
  return all.map((request, n) => {
    const customId = textAt(request, "custom_id") ?? ""
    if (n >= made) return { type: "canceled", customId, request }
    if (customId.includes("expires")) return { type: "expired", customId, request }
    return { type: customId.includes("fails") ? "errored" : "succeeded", customId, request }
  })
}

const lineOf = ({ customId, request, type }: ReturnType<typeof resultsOf>[number]): Uint8Array => {
  if (type === "succeeded") {
    return simulatedLine("/v1/messages", Buffer.from(JSON.stringify(request)))
  }
  const error = {
    type: "error",
    error: { type: "api_error", message: "Internal server error" },
    request_id: "req_1"
  }
  const result = type === "errored" ? { type, error } : { type }
  return Buffer.from(`${JSON.stringify({ custom_id: customId, result })}\n`)
}

/** By its name, a result comes again, or with one more of a request that nobody sent. */
const linesOf = (result: ReturnType<typeof resultsOf>[number]): ReadonlyArray<Uint8Array> => {
  const line = lineOf(result)
  if (result.customId.includes("repeats")) return [line, line]
  if (!result.customId.includes("invents")) return [line]
  return [line, Buffer.from(Buffer.from(line).toString("utf8").replace("invents", "invented"))]
}

const isoOf = (millis: number) => new Date(millis).toISOString()

const batchOf = (job: Job, vendor: Vendor): object => {
  const isRunning = vendor.isRunning(job)
  const results = isRunning ? [] : resultsOf(job)
  const count = (type: string) => results.filter((it) => it.type === type).length
  return {
    id: job.id,
    type: "message_batch",
    processing_status: !isRunning ? "ended" : job.isCancelled ? "canceling" : "in_progress",
    request_counts: {
      processing: isRunning ? ordered.get(job)?.length : 0,
      succeeded: count("succeeded"),
      errored: count("errored"),
      canceled: count("canceled"),
      expired: count("expired")
    },
    created_at: isoOf(job.createdAt),
    expires_at: isoOf(job.createdAt + 86_400_000),
    ended_at: isRunning ? null : isoOf(job.createdAt),
    cancel_initiated_at: job.isCancelled ? isoOf(job.createdAt) : null,
    archived_at: null,
    results_url: isRunning ? null : `${vendor.url}/v1/messages/batches/${job.id}/results`
  }
}

const listBatches = ({ query }: VendorRequest, vendor: Vendor): Reply => {
  const all = vendor.listedJobs.filter((job) => ordered.has(job)).toReversed()
  const after = all.findIndex(({ id }) => id === query.get("after_id")) + 1
  const size = Math.min(Number(query.get("limit") ?? 20), vendor.pageSize)
  const page = all.slice(after, after + size)
  const more = { has_more: after + size < all.length, last_id: page.at(-1)?.id ?? null }
  return { status: 200, json: { data: page.map((job) => batchOf(job, vendor)), ...more } }
}

/** Everything about batches except their submit. docs/reference/vendors.md#anthropic-batches */
export const batches = (request: VendorRequest, vendor: Vendor): Reply | undefined => {
  if (request.path === "/v1/messages/batches") return listBatches(request, vendor)
  const [, id = "", action] =
    /^\/v1\/messages\/batches\/([^/]+)(?:\/(cancel|results))?$/u.exec(request.path) ?? []
  if (id === "") return undefined
  if (action === undefined) {
    const job = vendor.poll(id)
    return job === undefined ? missing(id) : { status: 200, json: batchOf(job, vendor) }
  }
  const job = vendor.jobs.get(id)
  if (job === undefined) return missing(id)
  if (action === "cancel") {
    if (!vendor.isRunning(job)) return invalid(`Batch ${id} cannot be canceled: it has ended`)
    job.isCancelled = true
    return { status: 200, json: batchOf(job, vendor) }
  }
  if (vendor.isRunning(job)) return missing(id)
  return { status: 200, bytes: Buffer.concat(resultsOf(job).flatMap(linesOf)) }
}

/** The model of a submit. */
export const batchModelOf = ({ json }: VendorRequest): string | undefined =>
  textAt(listAt(json, "requests")?.[0], "params", "model")
