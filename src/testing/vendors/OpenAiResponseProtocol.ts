import { at } from "../../domain/json/Json.ts"
import { parseRequest } from "../../sandbox/Completion.ts"
import type { Completion } from "../../sandbox/Completion.ts"
import { openAiResponse, openAiResponseEvents } from "../../sandbox/ResponsesFormat.ts"
import { failure, invalid } from "./OpenAiFailure.ts"
import { videoFailures } from "./OpenAiVideoProtocol.ts"
import type { Job, Reply, Vendor } from "./Protocol.ts"
import type { VendorRequest } from "./VendorRequest.ts"

/** A submitted response. */
interface Ordered {
  readonly completion: Completion
  readonly isStreamed: boolean
  readonly previous: string | null
}

const ordered = new WeakMap<Job, Ordered>()

export const isBackground = ({ json, method, path }: VendorRequest): boolean =>
  method === "POST" && path === "/v1/responses" && at(json, "background") === true

const missing = (id: string) =>
  failure(404, "invalid_request_error", null, `Response with id '${id}' not found.`)

const shown = (job: Job, completion: Completion, previous: string | null) => ({
  ...completion,
  more: {
    id: job.id,
    created_at: Math.floor(job.createdAt / 1000),
    background: true,
    store: true,
    previous_response_id: previous
  }
})

/** A response without output. */
const without = (job: Job, status: string, error: object | null = null): object => {
  const { completion, previous } = orderedOf(job)
  return {
    ...openAiResponse(shown(job, completion, previous)),
    status,
    error,
    output: [],
    usage: null
  }
}

const orderedOf = (job: Job): Ordered => {
  const found = ordered.get(job)
  if (found === undefined) throw new Error(`${job.id} is not a response`)
  return found
}

const responseOf = (job: Job, vendor: Vendor): object => {
  if (job.isCancelled) return without(job, "cancelled")
  if (vendor.isRunning(job)) return without(job, job.polls === 1 ? "queued" : "in_progress")
  const ending = vendor.endingOf(job, "image")
  if (ending._tag === "Failed") {
    const [code, words] = videoFailures.get(ending.kind) ?? ["server_error", "oops"]
    return without(job, "failed", { code, message: ending.message ?? words })
  }
  const { completion, previous } = orderedOf(job)
  return openAiResponse(shown(job, completion, previous))
}

/** The events of a response. The first two come before it has ended; a response that did not complete has no others. */
async function* eventsOf(job: Job, vendor: Vendor, after: number): AsyncGenerator<string> {
  const { completion, previous } = orderedOf(job)
  const events = openAiResponseEvents(shown(job, completion, previous))
  yield* events.slice(Math.max(0, after + 1), begunEvents)
  await vendor.ended(job)
  if (job.isCancelled || vendor.endingOf(job, "image")._tag === "Failed") return
  yield* events.slice(Math.max(begunEvents, after + 1))
}

const begunEvents = 2

/** Accepts a background response. */
export const submitResponse = (request: VendorRequest, vendor: Vendor): Reply => {
  const previous = at(request.json, "previous_response_id") ?? null
  if (previous !== null && vendor.jobs.get(String(previous)) === undefined) {
    return failure(
      400,
      "invalid_request_error",
      "previous_response_not_found",
      `Previous response with id '${String(previous)}' not found.`
    )
  }
  const { completion, stream } = parseRequest(
    { path: request.path, body: request.bytes },
    vendor.answerOf(request)
  )
  const job = vendor.buy(request, { prefix: "resp_" })
  ordered.set(job, {
    completion,
    isStreamed: stream,
    previous: previous === null ? null : String(previous)
  })
  return stream
    ? { status: 200, events: eventsOf(job, vendor, -1) }
    : { status: 200, json: without(job, "queued") }
}

/** The routes of one response: its state, its events, its cancellation. */
export const responses = (request: VendorRequest, vendor: Vendor): Reply | undefined => {
  const [, id = "", cancel] =
    /^\/v1\/responses\/(?!input_tokens$)([^/]+)(\/cancel)?$/u.exec(request.path) ?? []
  if (id === "") return undefined
  if (cancel !== undefined && request.method === "POST") {
    const job = vendor.jobs.get(id)
    if (job === undefined) return missing(id)
    if (!job.isCancelled && !vendor.isRunning(job)) {
      return invalid("Cannot cancel a completed response.")
    }
    job.isCancelled = true
    return { status: 200, json: responseOf(job, vendor) }
  }
  const job = vendor.poll(id)
  if (request.method !== "GET" || job === undefined) return missing(id)
  if (request.query.get("stream") !== "true") {
    return { status: 200, json: responseOf(job, vendor) }
  }
  if (!orderedOf(job).isStreamed) return invalid("This response cannot be streamed.")
  const after = Number(request.query.get("starting_after") ?? -1)
  return { status: 200, events: eventsOf(job, vendor, after) }
}
