import { createHash } from "node:crypto"
import { createServer } from "node:http"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type * as Protocols from "../../../src/testing/vendors/Protocol.ts"
import { readRequest } from "../../../src/testing/vendors/VendorRequest.ts"
import type { VendorRequest } from "../../../src/testing/vendors/VendorRequest.ts"
import { pixel } from "../../../src/vendors/mock/Pixel.ts"
import type { VendorErrorClass } from "../../../src/vendors/VendorError.ts"
import { listen, stop } from "../localServer.ts"
import { pause } from "../until.ts"

export { pixel }
export type Protocol = Protocols.Protocol

/** A fault of one request. The next request is not affected. */
export type Fault =
  | "429"
  | "429-wait"
  | "unavailable"
  | "edge-403"
  | "edge-502"
  | "edge-504"
  | "drop-before"
  | "drop-after"
  | "garbage"
  | "operator"
  | "content"
  | "client"
  | "media"
  | "hang"
  | "stall"

/** How an upstream's jobs end. */
export type Ending =
  | "done"
  | "partial"
  | "surplus"
  | "flagged"
  | "nothing"
  | "failed"
  | "content"
  | "lost"

const files = {
  image: ["image/png", "png"],
  video: ["video/mp4", "mp4"],
  audio: ["audio/mpeg", "mp3"],
  mesh: ["model/gltf-binary", "glb"],
  document: ["application/json", "json"]
} as const

export interface Seen extends VendorRequest {
  readonly bytes: Buffer
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly json: any
}

export interface Reply extends Protocols.Reply {
  /** Sent instead of `bytes`. */
  readonly media?: Media
}

/** The contents of an upstream's results. */
export interface Media {
  /** The first bytes; zeros follow. */
  readonly head: Buffer
  /** The size in bytes. Default: the length of `head`. */
  readonly size?: number
  /** Whether to send it without `Content-Length`. */
  readonly isChunked?: boolean
  readonly type?: string
  /** The next downloads break off after this many bytes. With `isHanging` their connections then stay open. */
  readonly breaks?: Array<number>
  readonly isHanging?: boolean
}

export interface Job extends Protocols.Job {
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly body: any
  createdAt: number
}

const refusals: { readonly [fault in Fault]?: VendorErrorClass } = {
  "429": "RATE_LIMITED",
  "429-wait": "RATE_LIMITED",
  unavailable: "RETRYABLE",
  operator: "OPERATOR",
  content: "CONTENT",
  client: "FATAL_CLIENT",
  media: "MEDIA"
}

/**
 * A vendor as a real HTTP server on 127.0.0.1, in its own wire format, with the faults that tests of the gateway need.
 * `startVendorServer` is for other programs.
 */
export class Upstream implements Protocols.Vendor {
  readonly #protocol: Protocol
  readonly #server: Server
  /** The number of requests, including downloads of results. */
  requests = 0
  /** All requests except downloads, in order. */
  readonly seen: Array<Seen> = []
  readonly jobs = new Map<string, Job>()
  /** How many jobs were created by submits with the same body, by the body's hash. */
  readonly paid = new Map<string, number>()
  /** Faults of the next submits, and of the next other requests. Each is used once. */
  submitFaults: Array<Fault | Reply> = []
  askFaults: Array<Fault | Reply> = []
  /** Faults of the next cancel requests. Each is used once. */
  cancelFaults: Array<Fault | Reply> = []
  /** Faults of the next downloads at `/results/`. Each is used once. */
  resultFaults: Array<"hang"> = []
  ending: Ending = "done"
  /** How many polls report a job as still running. */
  runningPolls = 1
  /** The number of jobs per page of its list. */
  pageSize = 100
  /** How many lists show no jobs yet. */
  lateLists = 0
  /** Submits with this text get no response, whether or not a job is created. */
  heldBeforeTaken: string | undefined
  heldAfterTaken: string | undefined
  /** The bodies of the submits that created jobs, in order. */
  readonly paidBodies: Array<Buffer> = []
  /** The delay of each submit's response, in milliseconds. */
  delayMillis = 0
  /** Whether result URLs return 404. */
  isResultGone = false
  media: Media = { head: pixel }
  /** How many bytes of results were sent. */
  mediaBytesSent = 0
  /** Runs after a submit has created its job and before the response. */
  onPaid: () => void | Promise<void> = () => {}
  /** The fault of a request for which the lists above have none. */
  faultOf: (seen: Seen, isSubmit: boolean) => Fault | undefined = () => undefined
  /** Runs when a job has been created. */
  onJob: (job: Job, seen: Seen) => void = () => {}
  /** Whether requests are stored in `seen`, and bodies in `paidBodies`. */
  keepsRequests = true
  /** The URL at which clients reach it, if that is not its own port. */
  publicUrl: string | undefined
  #ids = 0

  private constructor(protocol: Protocol) {
    this.#protocol = protocol
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => request.socket.destroy())
    })
  }

  static async start(protocol: Protocol): Promise<Upstream> {
    const upstream = new Upstream(protocol)
    await listen(upstream.#server)
    return upstream
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    if (this.publicUrl !== undefined) return this.publicUrl
    return `http://127.0.0.1:${this.port}`
  }

  get key(): string {
    return this.#protocol.key
  }

  get paidSubmits(): number {
    return [...this.paid.values()].reduce((sum, count) => sum + count, 0)
  }

  /** The jobs that a list currently shows, oldest first. */
  get listedJobs(): ReadonlyArray<Job> {
    if (this.lateLists === 0) return [...this.jobs.values()]
    this.lateLists -= 1
    return []
  }

  /** The number of cancel requests. */
  get cancels(): number {
    return this.seen.filter(({ path }) => path.endsWith("/cancel")).length
  }

  get lastSubmit(): Seen {
    const found = this.seen.findLast((seen) => this.#protocol.isSubmit(seen))
    if (found === undefined) throw new Error("nothing was submitted")
    return found
  }

  async close(): Promise<void> {
    await stop(this.#server)
  }

  reset(): void {
    this.seen.length = 0
    this.jobs.clear()
    this.paid.clear()
    this.submitFaults = []
    this.askFaults = []
    this.cancelFaults = []
    this.resultFaults = []
    this.ending = "done"
    this.runningPolls = 1
    this.delayMillis = 0
    this.pageSize = 100
    this.lateLists = 0
    this.heldBeforeTaken = undefined
    this.heldAfterTaken = undefined
    this.paidBodies.length = 0
    this.isResultGone = false
    this.media = { head: pixel }
    this.mediaBytesSent = 0
    this.onPaid = () => {}
  }

  buy(request: VendorRequest, order: Protocols.Order = {}): Job {
    const seen = request as Seen
    const hash = createHash("sha256").update(seen.bytes).digest("hex")
    this.paid.set(hash, (this.paid.get(hash) ?? 0) + 1)
    if (this.keepsRequests) this.paidBodies.push(seen.bytes)
    this.#ids += 1
    const id = `${order.prefix ?? ""}${String(this.#ids).padStart(8, "0")}-${hash.slice(0, 12)}`
    const job = {
      id,
      model: this.#protocol.modelOf(seen),
      body: order.body ?? seen.json,
      path: seen.path,
      createdAt: Date.now(),
      count: order.count ?? 1,
      polls: 0,
      isCancelled: false
    }
    this.jobs.set(id, job)
    this.onJob(job, seen)
    return job
  }

  poll(id: string): Job | undefined {
    const job = this.jobs.get(id)
    if (job === undefined || this.ending === "lost") return undefined
    job.polls += 1
    return job
  }

  isRunning(job: Protocols.Job): boolean {
    return job.polls <= this.runningPolls && !job.isCancelled
  }

  async ended(job: Protocols.Job): Promise<void> {
    job.polls = this.runningPolls
  }

  endingOf(job: Protocols.Job, kind: Protocols.MadeKind): Protocols.Ending {
    if (this.ending === "failed" || this.ending === "content") {
      const failure = this.ending === "failed" ? "FAILED" : "CONTENT"
      return { _tag: "Failed", kind: failure, message: undefined }
    }
    const [mime, extension] = files[kind]
    const made = Array.from({ length: this.#made(job) }, (_, n) => ({
      url: `${this.url}/results/${job.id}-${n}.${extension}`,
      mime,
      bytes: pixel
    }))
    return { _tag: "Made", files: made, isFlagged: this.ending === "flagged" }
  }

  answerOf(): undefined {
    return undefined
  }

  forget(id: string): boolean {
    return this.jobs.delete(id)
  }

  /** The number of results of a job. */
  #made({ count }: Protocols.Job): number {
    if (this.ending === "nothing") return 0
    if (this.ending === "surplus") return count + 1
    return this.ending === "partial" ? Math.max(1, count - 1) : count
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seen = (await readRequest(request)) as Seen
    this.requests += 1
    if (seen.path.startsWith("/results/")) {
      if (this.resultFaults.shift() === "hang") return
      return this.#write(
        response,
        this.isResultGone ? { status: 404 } : { status: 200, media: this.media }
      )
    }
    if (this.keepsRequests) this.seen.push(seen)
    const isSubmit = this.#protocol.isSubmit(seen)
    const fault = this.#faults(isSubmit, seen).shift() ?? this.faultOf(seen, isSubmit)
    if (isSubmit && this.delayMillis > 0) await pause(this.delayMillis)
    if (fault === "drop-before") return void request.socket.destroy()
    if (fault === "hang" || (isSubmit && includes(seen, this.heldBeforeTaken))) return
    const refusal = fault === undefined ? undefined : this.#refusal(fault)
    if (refusal !== undefined) return this.#write(response, refusal)
    const reply = this.#protocol.stranger(seen, this.key) ??
      (await this.#protocol.respond(seen, this)) ?? { status: 404, json: {} }
    if (isSubmit && includes(seen, this.heldAfterTaken)) return
    if (isSubmit && reply.status < 300) await this.onPaid()
    if (fault === "drop-after") return void request.socket.destroy()
    if (fault === "stall") {
      response.writeHead(200, { "content-type": "application/json", "content-length": 1000 })
      return void response.write("{")
    }
    if (fault === "garbage")
      return this.#write(response, { status: 200, bytes: Buffer.from("<html>") })
    return this.#write(response, reply)
  }

  async #write(response: ServerResponse, reply: Reply): Promise<void> {
    if (reply.file !== undefined) {
      const media = { type: reply.file.mime, ...this.media }
      return this.#write(response, this.isResultGone ? { status: 404 } : { status: 200, media })
    }
    if (reply.media === undefined) return write(response, reply)
    const { breaks, head, isChunked, isHanging, size = head.length, type } = reply.media
    response.writeHead(reply.status, {
      "content-type": type ?? "application/octet-stream",
      ...(isChunked === true ? {} : { "content-length": size }),
      ...reply.headers
    })
    const most = breaks?.shift() ?? size
    const zeros = Buffer.alloc(64 * 1024)
    response.setMaxListeners(0)
    for (let sent = 0; sent < most && !response.destroyed;) {
      const piece = sent === 0 ? head : zeros.subarray(0, most - sent)
      sent += piece.length
      this.mediaBytesSent += piece.length
      if (!response.write(piece)) {
        await new Promise<void>((resolve) => {
          response.once("drain", resolve).once("close", resolve)
        })
      }
    }
    if (most === size) response.end()
    else if (isHanging !== true) response.destroy()
  }

  #faults(isSubmit: boolean, { path }: Seen): Array<Fault | Reply> {
    if (isSubmit) return this.submitFaults
    return path.endsWith("/cancel") ? this.cancelFaults : this.askFaults
  }

  #refusal(fault: Fault | Reply): Reply | undefined {
    if (typeof fault !== "string") return fault
    const kind = refusals[fault]
    const refusal = kind === undefined ? undefined : this.#protocol.refusal(kind)
    if (refusal !== undefined) {
      const wait = fault === "429-wait" ? { "retry-after": "7" } : {}
      return { ...refusal, headers: { ...refusal.headers, ...wait } }
    }
    switch (fault) {
      case "edge-403":
        return { status: 403, bytes: Buffer.from("<html>Forbidden</html>") }
      case "edge-502":
        return { status: 502, bytes: Buffer.from("<html>Bad Gateway</html>") }
      case "edge-504":
        return { status: 504, bytes: Buffer.from("<html>Gateway Time-out</html>") }
      default:
        return undefined
    }
  }
}

const includes = ({ bytes }: Seen, text: string | undefined): boolean =>
  text !== undefined && bytes.includes(text)

const write = (response: ServerResponse, reply: Reply): void => {
  const body = reply.bytes ?? Buffer.from(JSON.stringify(reply.json ?? {}))
  response.writeHead(reply.status, {
    "content-type": reply.bytes === undefined ? "application/json" : "application/octet-stream",
    ...reply.headers
  })
  response.end(body)
}
