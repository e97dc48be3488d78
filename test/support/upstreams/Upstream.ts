import { createHash } from "node:crypto"
import { createServer } from "node:http"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** A fault of one request; the next request is not affected. */
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

/** How the jobs of an upstream end. */
export type Ending =
  | "done"
  | "partial"
  | "surplus"
  | "flagged"
  | "nothing"
  | "failed"
  | "content"
  | "lost"

export interface Seen {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage["headers"]
  readonly bytes: Buffer
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly json: any
  /** The fields of a `multipart/form-data` body, by name. Of a file: its bytes, as Latin-1 text. */
  readonly form: ReadonlyMap<string, ReadonlyArray<FormPart>>
}

export interface FormPart {
  readonly text: string
  /** A file has one. */
  readonly fileName?: string
  readonly type?: string
}

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly bytes?: Buffer
  /** Instead of `bytes`. */
  readonly media?: Media
}

/** What the results of an upstream hold. */
export interface Media {
  /** Its first bytes; zeros follow. */
  readonly head: Buffer
  /** Bytes; the length of `head` by default. */
  readonly size?: number
  /** Without `Content-Length`. */
  readonly isChunked?: boolean
  readonly type?: string
  /** The next downloads break off after this many bytes; `isHanging`: they stay open then. */
  readonly breaks?: Array<number>
  readonly isHanging?: boolean
}

/** The vendor's own response for each refusal. */
export type Refusals = {
  readonly [fault in "429" | "unavailable" | "operator" | "content" | "client" | "media"]: Reply
}

export interface Protocol {
  readonly key: string
  readonly refusals: Refusals
  /** Whether this request submits a job. */
  readonly isSubmit: (seen: Seen) => boolean
  /** `undefined`: the vendor does not know the path. */
  readonly respond: (seen: Seen, upstream: Upstream) => Reply | undefined
}

export interface Job {
  readonly id: string
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly body: any
  /** Milliseconds. */
  createdAt: number
  /** Where it was submitted. */
  readonly path: string
  readonly count: number
  polls: number
  isCancelled: boolean
}

/** The smallest PNG there is. */
export const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

/** A vendor as a real HTTP server on 127.0.0.1 that follows its documented formats. */
export class Upstream {
  readonly #protocol: Protocol
  readonly #server: Server
  /** Number of requests, downloads of results included. */
  requests = 0
  /** All other requests in order. */
  readonly seen: Array<Seen> = []
  readonly jobs = new Map<string, Job>()
  /** Number of jobs that the submits of each body created, by the body's hash. */
  readonly paid = new Map<string, number>()
  /** Used up by the next submits, and by the next other requests. */
  submitFaults: Array<Fault | Reply> = []
  askFaults: Array<Fault | Reply> = []
  /** Used up by the next cancel requests. */
  cancelFaults: Array<Fault | Reply> = []
  /** Used up by the next downloads of results at `/results/`. */
  resultFaults: Array<"hang"> = []
  ending: Ending = "done"
  /** Polls that return a job as still running. */
  runningPolls = 1
  /** Jobs on a page of its list. */
  pageSize = 100
  /** Number of lists that show no job yet. */
  lateLists = 0
  /** Submits with this text get no response, whether a job is created or not. */
  heldBeforeTaken: string | undefined
  heldAfterTaken: string | undefined
  /** The jobs, in order of their submits. */
  readonly paidBodies: Array<Buffer> = []
  /** Delay of each submit's response. Milliseconds. */
  delayMillis = 0
  /** Result URLs return 404. */
  isResultGone = false
  media: Media = { head: pixel }
  /** Bytes of results that were sent. */
  mediaBytesSent = 0
  /** Runs after a submit has created its job, before the response. */
  onPaid: () => void | Promise<void> = () => {}
  /** The fault of a request that no list above has one for. */
  faultOf: (seen: Seen, isSubmit: boolean) => Fault | undefined = () => undefined
  /** Runs when a job was created. */
  onJob: (job: Job, seen: Seen) => void = () => {}
  /** Whether requests are kept in `seen`, and bodies in `paidBodies`. */
  keepsRequests = true
  /** Where clients reach it, when not at its own port. */
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
    await new Promise<void>((resolve) => {
      upstream.#server.listen(0, "127.0.0.1", () => resolve())
    })
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

  /** The jobs that a list shows now, oldest first. */
  get listedJobs(): ReadonlyArray<Job> {
    if (this.lateLists === 0) return [...this.jobs.values()]
    this.lateLists -= 1
    return []
  }

  /** Number of cancel requests. */
  get cancels(): number {
    return this.seen.filter(({ path }) => path.endsWith("/cancel")).length
  }

  /** The last submit. */
  get lastSubmit(): Seen {
    const found = this.seen.findLast((seen) => this.#protocol.isSubmit(seen))
    if (found === undefined) throw new Error("nothing was submitted")
    return found
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
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

  /** Creates a job. */
  buy(seen: Seen, prefix: string, count = 1): Job {
    const hash = createHash("sha256").update(seen.bytes).digest("hex")
    this.paid.set(hash, (this.paid.get(hash) ?? 0) + 1)
    if (this.keepsRequests) this.paidBodies.push(seen.bytes)
    this.#ids += 1
    const id = `${prefix}${String(this.#ids).padStart(8, "0")}-${hash.slice(0, 12)}`
    const job = {
      id,
      body: seen.json,
      path: seen.path,
      createdAt: Date.now(),
      count,
      polls: 0,
      isCancelled: false
    }
    this.jobs.set(id, job)
    this.onJob(job, seen)
    return job
  }

  /** The job as a poll finds it: `undefined` when it never existed or was dropped. */
  poll(id: string): { readonly job: Job; readonly isRunning: boolean } | undefined {
    const job = this.jobs.get(id)
    if (job === undefined || this.ending === "lost") return undefined
    job.polls += 1
    return { job, isRunning: job.polls <= this.runningPolls && !job.isCancelled }
  }

  /** Number of results of a job. */
  made(job: Job): number {
    if (this.ending === "nothing") return 0
    if (this.ending === "surplus") return job.count + 1
    return this.ending === "partial" ? Math.max(1, job.count - 1) : job.count
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seen = await readRequest(request)
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
    const reply = this.#protocol.respond(seen, this) ?? { status: 404, json: {} }
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
    const { refusals } = this.#protocol
    switch (fault) {
      case "429":
        return refusals["429"]
      case "429-wait":
        return { ...refusals["429"], headers: { ...refusals["429"].headers, "retry-after": "7" } }
      case "edge-403":
        return { status: 403, bytes: Buffer.from("<html>Forbidden</html>") }
      case "edge-502":
        return { status: 502, bytes: Buffer.from("<html>Bad Gateway</html>") }
      case "edge-504":
        return { status: 504, bytes: Buffer.from("<html>Gateway Time-out</html>") }
      case "unavailable":
      case "operator":
      case "content":
      case "client":
      case "media":
        return refusals[fault]
      default:
        return undefined
    }
  }
}

const includes = ({ bytes }: Seen, text: string | undefined): boolean =>
  text !== undefined && bytes.includes(text)

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

const readRequest = async (request: IncomingMessage): Promise<Seen> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const url = new URL(request.url ?? "/", "http://upstream.test")
  const type = request.headers["content-type"] ?? ""
  // Vendors' clients announce JSON on requests without a body, too
  const isJson = type.startsWith("application/json") && bytes.length > 0
  return {
    method: request.method ?? "GET",
    path: url.pathname,
    query: url.searchParams,
    headers: request.headers,
    bytes,
    json: isJson ? JSON.parse(bytes.toString()) : undefined,
    form: formOf(type, bytes)
  }
}

/** Every field, read as Latin-1 so that no byte of a file changes; texts are UTF-8. */
const formOf = (type: string, bytes: Buffer): ReadonlyMap<string, ReadonlyArray<FormPart>> => {
  const fields = new Map<string, Array<FormPart>>()
  const [, boundary] = /^multipart\/form-data;.*boundary="?([^";]+)/iu.exec(type) ?? []
  if (boundary === undefined) return fields
  for (const piece of bytes.toString("latin1").split(`--${boundary}`).slice(1, -1)) {
    const end = piece.indexOf("\r\n\r\n")
    const head = piece.slice(0, end)
    const content = piece.slice(end + 4, -2)
    const name = /name="([^"]*)"/iu.exec(head)?.[1] ?? ""
    const fileName = /filename="([^"]*)"/iu.exec(head)?.[1]
    const [, contentType] = /^content-type: *(\S+)/imu.exec(head) ?? []
    const text = fileName === undefined ? Buffer.from(content, "latin1").toString() : content
    fields.set(name, [
      ...(fields.get(name) ?? []),
      {
        text,
        ...(fileName === undefined ? {} : { fileName }),
        ...(contentType === undefined ? {} : { type: contentType })
      }
    ])
  }
  return fields
}

const write = (response: ServerResponse, reply: Reply): void => {
  const body = reply.bytes ?? Buffer.from(JSON.stringify(reply.json ?? {}))
  response.writeHead(reply.status, {
    "content-type": reply.bytes === undefined ? "application/json" : "application/octet-stream",
    ...reply.headers
  })
  response.end(body)
}
