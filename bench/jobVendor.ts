/**
 * The upstream of the life-cycle benchmark: fal's queue protocol. A job is done at once, or keeps running while its
 * prompt contains `wait`; a submit is answered late if the prompt contains `slow`. By IPC it reports its port and, on
 * request, how many jobs it has and how they were polled.
 */
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { solidPng } from "./solidPng.ts"

const picture = solidPng(256)
/** A waiting job, and the time of its last poll. */
interface Waiting {
  readonly since: number
  last: number
}
const waiting = new Map<string, Waiting>()
let lateness: Array<number> = []
let polls = 0
let jobs = 0

/** The client's interval in the first minute, docs/reference/vendors.md#poll-interval. */
const pollMillis = 2500
const pollMillisUntil = 60_000

const send = (response: ServerResponse, value: unknown) => {
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(200, { "content-type": "application/json", "content-length": body.length })
  response.end(body)
}

const observePoll = (id: string) => {
  const job = waiting.get(id)
  if (job === undefined) return
  const now = performance.now()
  polls += 1
  if (job.last - job.since < pollMillisUntil - pollMillis)
    lateness.push(now - job.last - pollMillis)
  job.last = now
}

const server = createServer((request, response) => {
  const url = request.url ?? ""
  const origin = `http://${request.headers.host}`
  if (url.startsWith("/media/")) {
    response.writeHead(200, { "content-type": "image/png", "content-length": picture.length })
    response.end(picture)
    return
  }
  const [, id, what] = /\/requests\/([\w-]+)(\/status)?/u.exec(url) ?? []
  if (id !== undefined) {
    if (what === undefined) send(response, { images: [{ url: `${origin}/media/${id}.png` }] })
    else {
      observePoll(id)
      send(response, { status: waiting.has(id) ? "IN_PROGRESS" : "COMPLETED", request_id: id })
    }
    return
  }
  let body = ""
  request.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")))
  request.on("end", () => {
    const request_id = `job-${(jobs += 1)}`
    const now = performance.now()
    if (body.includes('"wait')) waiting.set(request_id, { since: now, last: now })
    const base = `${origin}/fal-ai/bench/requests/${request_id}`
    const answer = () =>
      send(response, {
        request_id,
        response_url: base,
        status_url: `${base}/status`,
        cancel_url: `${base}/cancel`
      })
    if (body.includes('"slow')) setTimeout(answer, 400)
    else answer()
  })
})

process.on("message", (message) => {
  if (message === "finish") waiting.clear()
  process.send?.({ jobs, lateness, polls })
  lateness = []
  polls = 0
})
server.listen(0, "127.0.0.1", () =>
  process.send?.({ port: (server.address() as AddressInfo).port })
)
process.on("disconnect", () => process.exit(0))
