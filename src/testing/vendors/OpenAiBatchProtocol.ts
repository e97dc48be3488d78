import { at } from "../../domain/json/Json.ts"
import { simulatedLine } from "../../sandbox/SimulatedBatch.ts"
import { failure, invalid } from "./OpenAiFailure.ts"
import { videoFailures } from "./OpenAiVideoProtocol.ts"
import type { Job, Reply, Vendor } from "./Protocol.ts"
import { textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

/** A file at the vendor. */
interface StoredFile {
  readonly id: string
  readonly bytes: Uint8Array
  readonly purpose: string
}

/** The files of each vendor: uploaded ones, and those that its batches made. */
const stored = new WeakMap<Vendor, Map<string, StoredFile>>()

const filesOf = (vendor: Vendor): Map<string, StoredFile> => {
  const known = stored.get(vendor) ?? new Map<string, StoredFile>()
  stored.set(vendor, known)
  return known
}

interface OrderedBatch {
  readonly input: StoredFile
  readonly endpoint: string
  readonly metadata: unknown
}

const ordered = new WeakMap<Job, OrderedBatch>()

export const isBatchCreate = ({ method, path }: VendorRequest): boolean =>
  method === "POST" && path === "/v1/batches"

const missing = (what: string, id: string) =>
  failure(404, "invalid_request_error", null, `No ${what} found with id '${id}'.`)

const linesOf = (bytes: Uint8Array): ReadonlyArray<Buffer> =>
  Buffer.from(bytes)
    .toString("latin1")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => Buffer.from(line, "latin1"))

/** Requests with such an id fail at the vendor. */
const failing = /"custom_id" *: *"fails/u

/** Requests with such an id are not run in time, so their batch expires. */
const expiring = /"custom_id" *: *"expires/u

/**
 * Makes faulty results of requests whose `custom_id` asks for them: `repeats` sends the result twice, `invents` adds the
 * result of a request that was never sent, and `claims -5` reports that number of tokens.
 */
const faulty = /"custom_id" *: *"(?:(repeats)|(invents)|claims ([-+\d.e]+))/u

const linesFor = (endpoint: string, line: Buffer): ReadonlyArray<Uint8Array> => {
  const result = Buffer.from(simulatedLine(endpoint, line)).toString("utf8")
  const [, repeats, invents, claimed] = faulty.exec(result) ?? []
  const claiming = result.replace(
    /"(completion_tokens|output_tokens)":\d+/u,
    claimed === undefined ? "$&" : `"$1":${claimed}`
  )
  const more = repeats === undefined ? result.replace("invents", "invented") : result
  const isMore = repeats !== undefined || invents !== undefined
  return (isMore ? [claiming, more] : [claiming]).map((text) => Buffer.from(text))
}

/** The results that a batch has so far. A cancelled one has half of them. */
const resultsOf = (job: Job) => {
  const found = ordered.get(job)
  if (found === undefined) throw new Error(`${job.id} is not a batch`)
  const { endpoint, input } = found
  const all = linesOf(input.bytes)
  const inTime = all.filter((line) => !expiring.test(line.toString("utf8")))
  const made = job.isCancelled ? all.slice(0, Math.ceil(all.length / 2)) : inTime
  const isFailing = (line: Buffer) => failing.test(line.toString("utf8"))
  return {
    total: all.length,
    isExpired: !job.isCancelled && made.length < all.length,
    completed: made.filter((line) => !isFailing(line)).length,
    output: made.filter((line) => !isFailing(line)).flatMap((line) => linesFor(endpoint, line)),
    errors: made.filter(isFailing).map((line) => failedLine(line))
  }
}

const failedLine = (line: Buffer): Uint8Array => {
  const customId = textAt(JSON.parse(line.toString("utf8")), "custom_id")
  const error = { message: "The server had an error", type: "server_error", code: "server_error" }
  const response = { status_code: 500, request_id: "req_1", body: { error } }
  return Buffer.from(
    `${JSON.stringify({ id: "batch_req_1", custom_id: customId, response, error: null })}\n`
  )
}

const store = (vendor: Vendor, id: string, lines: ReadonlyArray<Uint8Array>): string | null => {
  if (lines.length === 0) return null
  filesOf(vendor).set(id, { id, bytes: Buffer.concat([...lines]), purpose: "batch_output" })
  return id
}

const seconds = (millis: number): number => Math.floor(millis / 1000)

const batchOf = (job: Job, vendor: Vendor): object => {
  const batch = ordered.get(job)
  const plain = {
    id: job.id,
    object: "batch",
    endpoint: batch?.endpoint,
    input_file_id: batch?.input.id,
    completion_window: "24h",
    created_at: seconds(job.createdAt),
    metadata: batch?.metadata ?? null,
    errors: null,
    output_file_id: null,
    error_file_id: null
  }
  if (vendor.isRunning(job)) {
    const total = linesOf(batch?.input.bytes ?? new Uint8Array()).length
    const status = job.polls <= 1 ? "validating" : "in_progress"
    return { ...plain, status, request_counts: { total, completed: 0, failed: 0 } }
  }
  const ending = vendor.endingOf(job, "image")
  if (ending._tag === "Failed" && !job.isCancelled) {
    const [code, words] = videoFailures.get(ending.kind) ?? ["server_error", "oops"]
    const data = [{ code, message: ending.message ?? words, line: null, param: null }]
    return { ...plain, status: "failed", errors: { object: "list", data } }
  }
  const { completed, errors, isExpired, output, total } = resultsOf(job)
  return {
    ...plain,
    status: job.isCancelled ? "cancelled" : isExpired ? "expired" : "completed",
    output_file_id: store(vendor, `file-out-${job.id}`, output),
    error_file_id: store(vendor, `file-err-${job.id}`, errors),
    request_counts: { total, completed, failed: errors.length }
  }
}

/** Accepts a batch. */
export const submitBatch = (request: VendorRequest, vendor: Vendor): Reply => {
  const { json } = request
  const input = filesOf(vendor).get(textAt(json, "input_file_id") ?? "")
  const endpoint = textAt(json, "endpoint") ?? ""
  if (input?.purpose !== "batch") return invalid("Invalid 'input_file_id'.")
  if (!/^\/v1\/(?:chat\/completions|responses|embeddings)$/u.test(endpoint)) {
    return invalid("Invalid 'endpoint'.")
  }
  if (textAt(json, "completion_window") !== "24h") return invalid("Invalid 'completion_window'.")
  const job = vendor.buy(request, { prefix: "batch_" })
  ordered.set(job, { input, endpoint, metadata: at(json, "metadata") })
  return { status: 200, json: batchOf(job, vendor) }
}

const listBatches = ({ query }: VendorRequest, vendor: Vendor): Reply => {
  const all = vendor.listedJobs.filter((job) => ordered.has(job)).toReversed()
  const after = all.findIndex(({ id }) => id === query.get("after")) + 1
  const size = Math.min(Number(query.get("limit") ?? 20), vendor.pageSize)
  const data = all.slice(after, after + size).map((job) => batchOf(job, vendor))
  return { status: 200, json: { object: "list", data, has_more: after + size < all.length } }
}

const upload = ({ form }: VendorRequest, vendor: Vendor): Reply => {
  const [purpose] = form.get("purpose") ?? []
  const [file] = form.get("file") ?? []
  if (purpose?.text !== "batch") return invalid("Invalid 'purpose'.")
  if (file?.fileName === undefined) return invalid("Missing required parameter: 'file'.")
  const bytes = Buffer.from(file.text, "latin1")
  const id = `file-${crypto.randomUUID()}`
  filesOf(vendor).set(id, { id, bytes, purpose: "batch" })
  return {
    status: 200,
    json: {
      id,
      object: "file",
      bytes: bytes.length,
      created_at: seconds(Date.now()),
      filename: file.fileName,
      purpose: "batch",
      status: "processed"
    }
  }
}

const file = (request: VendorRequest, vendor: Vendor): Reply | undefined => {
  if (request.path === "/v1/files" && request.method === "POST") return upload(request, vendor)
  const [, id = "", content] = /^\/v1\/files\/([^/]+)(\/content)?$/u.exec(request.path) ?? []
  if (id === "") return undefined
  const found = filesOf(vendor).get(id)
  if (found === undefined) return missing("file", id)
  return content === undefined
    ? {
        status: 200,
        json: { id, object: "file", bytes: found.bytes.length, purpose: found.purpose }
      }
    : { status: 200, bytes: found.bytes }
}

/** Files, and everything about batches except their submit. docs/reference/vendors.md#openai-batches */
export const batches = (request: VendorRequest, vendor: Vendor): Reply | undefined => {
  if (request.path === "/v1/batches") return listBatches(request, vendor)
  const [, id = "", cancel] = /^\/v1\/batches\/([^/]+)(\/cancel)?$/u.exec(request.path) ?? []
  if (id === "") return file(request, vendor)
  if (cancel !== undefined && request.method === "POST") {
    const job = vendor.jobs.get(id)
    if (job === undefined) return missing("batch", id)
    if (!vendor.isRunning(job)) return invalid("Cannot cancel a completed batch.")
    job.isCancelled = true
    return { status: 200, json: { ...batchOf(job, vendor), status: "cancelling" } }
  }
  const job = vendor.poll(id)
  return job === undefined || !ordered.has(job)
    ? missing("batch", id)
    : { status: 200, json: batchOf(job, vendor) }
}
