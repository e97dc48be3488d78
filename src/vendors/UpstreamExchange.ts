import { Readable } from "node:stream"
import { errors } from "undici"
import type { Client, Dispatcher } from "undici"
import type { UpstreamConnections } from "./UpstreamConnections.ts"

export type UpstreamHeaders = Readonly<Record<string, string | Array<string> | undefined>>

/** A call as the client means it: no credentials in it. */
export interface UpstreamRequest {
  readonly method: "GET" | "POST" | "DELETE"
  /** Begins with the version segment. */
  readonly path: string
  /** With its question mark, or empty. */
  readonly query: string
  /** Name and value in turn. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
  /** Present: an event stream is relayed as it comes, under this watch. */
  readonly watch: StreamWatch | undefined
}

/** What the upstream answered: small bodies whole, event streams as they come. */
export interface UpstreamAnswer {
  readonly status: number
  readonly headers: UpstreamHeaders
  readonly body: Uint8Array | Readable
}

/** Watches a stream that passes, and may take something out of it. */
export interface StreamWatch {
  /** Takes what came from upstream, answers what goes on. */
  readonly push: (chunk: Buffer) => Buffer
  /** What is left at the regular end. */
  readonly flush: () => Buffer
  /** Once: it came to its end, the upstream broke it off, or nobody wants the rest. */
  readonly ended: (how: "complete" | "broken" | "abandoned") => void
}

/**
 * - `unsent`: not one byte of the request was sent, so another account may be tried
 * - `timeout`: sent, and no answer in time
 * - `broken`: sent, and the connection or the answer broke
 */
export type FailureKind = "unsent" | "timeout" | "broken"

/** Who hears of the answer, or why there is none. */
export interface ExchangeEnd {
  readonly answered: (answer: UpstreamAnswer) => void
  readonly failed: (kind: FailureKind, error: Error) => void
}

/** Answers that are read whole are JSON; a larger one is broken. */
const wholeBytesMax = 64 * 1024 * 1024

/** What waits for a slow client before the upstream is told to wait. */
const streamBufferBytes = 64 * 1024

const aborted = new errors.RequestAbortedError()

/** An answer that flows: undici pushes, the client pulls, and back pressure reaches the upstream. */
export class RelayedStream extends Readable {
  readonly #watch: StreamWatch
  #controller: Dispatcher.DispatchController | undefined
  #ended = false

  constructor(watch: StreamWatch, controller?: Dispatcher.DispatchController) {
    super({ highWaterMark: streamBufferBytes })
    this.#watch = watch
    this.#controller = controller
    // It may break before anybody reads it, or when nobody does any more: no reason to end the process
    this.on("error", () => {})
  }

  /** Takes a chunk; `false` asks the upstream to wait. */
  receive(chunk: Buffer): boolean {
    const relayed = this.#watch.push(chunk)
    return relayed.length === 0 || this.push(relayed)
  }

  finish(): void {
    const rest = this.#watch.flush()
    if (rest.length > 0) this.push(rest)
    this.#end("complete")
    this.push(null)
  }

  breakOff(error: Error): void {
    this.#end("broken")
    this.destroy(error)
  }

  override _read(): void {
    this.#controller?.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#end("abandoned")
    this.#controller?.abort(aborted)
    this.#controller = undefined
    callback(error)
  }

  #end(how: "complete" | "broken" | "abandoned"): void {
    if (this.#ended) return
    this.#ended = true
    this.#watch.ended(how)
  }
}

/** One call on the wire, from undici's point of view. */
export class UpstreamExchange implements Dispatcher.DispatchHandler {
  readonly #end: ExchangeEnd
  readonly #watch: StreamWatch | undefined
  #controller: Dispatcher.DispatchController | undefined
  #aborted = false
  #status = 0
  #headers: UpstreamHeaders = {}
  #stream: RelayedStream | undefined
  #chunks: Array<Buffer> = []
  #bytes = 0
  #connections: UpstreamConnections | undefined
  /** In use for this call. */
  #client: Client | undefined

  constructor(end: ExchangeEnd, watch: StreamWatch | undefined) {
    this.#end = end
    this.#watch = watch
  }

  /** Once. */
  begin(connections: UpstreamConnections, options: Dispatcher.DispatchOptions): void {
    this.#connections = connections
    this.#client = connections.take()
    this.#client.dispatch(options, this)
  }

  /** The client went away: nothing more is sent or read. */
  abort(): void {
    this.#aborted = true
    this.#controller?.abort(aborted)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted) controller.abort(aborted)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: UpstreamHeaders
  ): void {
    // An informational answer (1xx) is not the answer.
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    if (this.#watch !== undefined && status < 300 && isEventStream(headers)) {
      this.#stream = new RelayedStream(this.#watch, controller)
      this.#end.answered({ status, headers, body: this.#stream })
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#stream !== undefined) {
      if (!this.#stream.receive(chunk)) controller.pause()
      return
    }
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > wholeBytesMax) controller.abort(new Error("the answer is too large"))
  }

  onResponseEnd(): void {
    if (this.#stream === undefined) this.#answeredWhole()
    else this.#stream.finish()
    this.#giveBack()
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#stream === undefined) this.#failed(error)
    else this.#stream.breakOff(error)
    this.#giveBack()
  }

  #answeredWhole(): void {
    const first = this.#chunks[0]
    const body =
      first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
    this.#end.answered({ status: this.#status, headers: this.#headers, body })
  }

  #failed(error: Error): void {
    const kind =
      this.#controller === undefined
        ? "unsent"
        : error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError
          ? "timeout"
          : "broken"
    this.#end.failed(kind, error)
  }

  #giveBack(): void {
    if (this.#client === undefined) return
    this.#connections?.giveBack(this.#client)
    this.#client = undefined
  }
}

const isEventStream = (headers: UpstreamHeaders): boolean => {
  const type = headers["content-type"]
  return typeof type === "string" && type.startsWith("text/event-stream")
}
