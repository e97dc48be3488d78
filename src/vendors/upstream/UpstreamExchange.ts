import type { Readable } from "node:stream"
import { errors } from "undici"
import type { Client, Dispatcher } from "undici"
import type { OpenRoute } from "../../catalog/OpenRoutes.ts"
import type { Problem } from "../../domain/Problem.ts"
import { MaskedStream } from "./SecretMask.ts"
import type { SecretMask } from "./SecretMask.ts"
import { StreamRelay } from "./StreamRelay.ts"
import type { StreamWatch } from "./StreamRelay.ts"
import type { UpstreamConnections } from "./UpstreamConnections.ts"

export type { StreamWatch } from "./StreamRelay.ts"

export type UpstreamHeaders = Readonly<Record<string, string | Array<string> | undefined>>

/** A body that is sent as it arrives from the client. */
export interface SentUpload {
  /** `undefined` if the length is not known in advance. */
  readonly length: number | undefined
  /** Part of it was sent, so it cannot be sent again. */
  readonly isSpent: boolean
  /** All of it has arrived from the client. */
  readonly isComplete: boolean
  /** Why it ended early, if that is not the vendor's fault. */
  readonly problem: Problem | undefined
  readonly open: () => Readable
}

/** A passthrough call, without credentials. */
export interface UpstreamRequest {
  readonly method: "GET" | "POST" | "DELETE"
  /** Starts with the version segment. */
  readonly path: string
  /** With its question mark, or empty. */
  readonly query: string
  /** Names and values alternate. */
  readonly headers: ReadonlyArray<string>
  /** Dropped when the response begins, because a stream may last for minutes. */
  body: Uint8Array
  /** If present, sent instead of `body`. */
  readonly upload?: SentUpload
  /** The name by which the vendor counts rates: the model of a metered call, else the route. */
  readonly model: string
  /** The user and the API key of the caller. */
  readonly user: string
  readonly key: string
  /** The open route of the call. */
  readonly route: OpenRoute
  /** The only account that may serve the call, because it stores the response that the call continues. */
  readonly account?: string
  /** If present, a stream is relayed as it arrives and observed by this watch. */
  readonly watch: StreamWatch | undefined
}

/** The upstream's response. Events and audio come as a `Readable`, any other body as a whole. */
export interface UpstreamResponse {
  readonly status: number
  readonly headers: UpstreamHeaders
  readonly body: Uint8Array | Readable
}

/**
 * - `unsent`: no byte of the request was sent, so another account can be tried
 * - `timeout`: the request was sent, and no response came in time
 * - `broken`: the request was sent, and the connection broke
 * - `page`: a success with an HTML page, so it is not the vendor's response
 */
export type FailureKind = "unsent" | "timeout" | "broken" | "page"

/** Exactly one of the two is called, once. */
export interface ExchangeHandlers {
  readonly onResponse: (response: UpstreamResponse) => void
  readonly onFailure: (kind: FailureKind, error: Error) => void
}

/** A larger body of a watched call is relayed as it arrives, so that it takes neither memory nor a long parse. */
export const documentBytesMin = 256 * 1024

/** Other bodies are read as a whole. A larger one counts as broken. */
const wholeBytesMax = 64 * 1024 * 1024

const aborted = new errors.RequestAbortedError()

/**
 * Replaces the handlers once a stream has begun, because they keep the call and its body, which may be large, in
 * memory.
 */
const noHandlers: ExchangeHandlers = { onResponse: () => {}, onFailure: () => {} }

/** Runs a part of a document's relay, which passes this many bytes, in a turn of the document's user. */
export type TakeTurn = (bytes: number, run: () => void) => void

/** One call, as a handler of undici. */
export class UpstreamExchange implements Dispatcher.DispatchHandler {
  #handlers: ExchangeHandlers
  readonly #watch: StreamWatch | undefined
  #controller: Dispatcher.DispatchController | undefined
  #aborted = false
  #status = 0
  #headers: UpstreamHeaders = {}
  readonly #mask: SecretMask
  readonly #takeTurn: TakeTurn
  #isDocument = false
  /** What has arrived of a document waits for a turn. */
  #isWaiting = false
  #stream: StreamRelay | undefined
  #masked: MaskedStream | undefined
  /**
   * The chunks of a body that is read as a whole, or the chunks of a stream that arrived in this turn of the event
   * loop.
   */
  #chunks: Array<Buffer> = []
  #bytes = 0
  #connections: UpstreamConnections | undefined
  /** The connection of this call, returned afterwards. */
  #client: Client | undefined

  constructor(
    handlers: ExchangeHandlers,
    watch: StreamWatch | undefined,
    mask: SecretMask,
    takeTurn: TakeTurn
  ) {
    this.#handlers = handlers
    this.#watch = watch
    this.#mask = mask
    this.#takeTurn = takeTurn
  }

  /** Called once. */
  begin(connections: UpstreamConnections, options: Dispatcher.DispatchOptions): void {
    this.#connections = connections
    this.#client = connections.take()
    this.#client.dispatch(options, this)
  }

  /** The client left: stops sending and reading. */
  abort(): void {
    this.#aborted = true
    this.#controller?.abort(aborted)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted) controller.abort(aborted)
    else this.#watch?.sent()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: UpstreamHeaders
  ): void {
    // Informational responses (1xx) come before the response.
    if (status < 200) return
    this.#status = status
    this.#headers = this.#mask.headers(headers)
    if (this.#watch !== undefined && status < 300 && isStream(headers)) {
      this.#open(controller, this.#watch)
    }
  }

  /** Responds with a stream of what has arrived and will arrive. */
  #open(controller: Dispatcher.DispatchController, watch: StreamWatch): StreamRelay {
    const relay = new StreamRelay(watch, {
      // A client that reads asks for more, also while what has arrived waits
      resume: () => void (this.#isWaiting || controller.resume()),
      abort: (reason) => controller.abort(reason)
    })
    this.#stream = relay
    this.#masked = new MaskedStream(this.#mask)
    const { onResponse } = this.#handlers
    this.#handlers = noHandlers
    onResponse({ status: this.#status, headers: this.#headers, body: relay.open() })
    return relay
  }

  /** Relays what has arrived of a document, in a turn of its user. The upstream pauses until then. */
  #relayInTurn(controller: Dispatcher.DispatchController, relay: StreamRelay): void {
    this.#isWaiting = true
    controller.pause()
    const bytes = this.#chunks.reduce((sum, { length }) => sum + length, 0)
    // They are read and written
    this.#takeTurn(2 * bytes, () => {
      this.#isWaiting = false
      if (this.#relayArrived() && !relay.isOver) controller.resume()
    })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
    if (this.#stream !== undefined) {
      // undici reports each event of a read as a separate chunk, so they are relayed together. Benchmark: `passthrough`
      if (this.#chunks.length > 1) return
      if (this.#isDocument) return this.#relayInTurn(controller, this.#stream)
      queueMicrotask(() => {
        if (!this.#relayArrived()) controller.pause()
      })
      return
    }
    this.#bytes += chunk.length
    if (this.#bytes > documentBytesMin && this.#watch !== undefined && this.#mayRelay()) {
      this.#isDocument = true
      this.#watch.document()
      this.#relayInTurn(controller, this.#open(controller, this.#watch))
    } else if (this.#bytes > wholeBytesMax) controller.abort(new Error("the response is too large"))
  }

  #mayRelay(): boolean {
    return this.#status < 300 && !isPage(this.#headers["content-type"])
  }

  onResponseEnd(): void {
    if (this.#stream === undefined) this.#respondWhole()
    else {
      this.#relayArrived()
      if (this.#masked !== undefined) this.#stream.receive(this.#masked.flush())
      this.#stream.finish()
    }
    this.#giveBack()
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#stream === undefined) this.#failed(error)
    else {
      this.#relayArrived()
      this.#stream.breakOff(error)
    }
    this.#giveBack()
  }

  /** Returns `false` if the upstream must pause. */
  #relayArrived(): boolean {
    const chunk = oneOf(this.#chunks)
    this.#chunks = []
    if (chunk.length === 0 || this.#stream === undefined || this.#masked === undefined) return true
    return this.#stream.receive(this.#masked.push(chunk))
  }

  #respondWhole(): void {
    if (this.#status < 300 && isPage(this.#headers["content-type"])) {
      return this.#failed(new Error("a page"), "page")
    }
    const body = this.#mask.bytes(oneOf(this.#chunks))
    if (this.#status >= 300) this.#watch?.refused()
    this.#handlers.onResponse({ status: this.#status, headers: this.#headers, body })
  }

  #failed(error: Error, kind = this.#kindOf(error)): void {
    // If the client left, the upstream may still be executing the call
    if (!this.#aborted) this.#watch?.refused()
    this.#handlers.onFailure(kind, error)
  }

  #kindOf(error: Error): FailureKind {
    if (this.#controller === undefined) return "unsent"
    return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError
      ? "timeout"
      : "broken"
  }

  #giveBack(): void {
    if (this.#client === undefined) return
    this.#connections?.giveBack(this.#client)
    this.#client = undefined
  }
}

const oneOf = (chunks: ReadonlyArray<Buffer>): Buffer => {
  const first = chunks[0]
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
}

/** Whether a browser would show this type as a page. */
export const isPage = (type: UpstreamHeaders[string]): boolean =>
  typeof type === "string" && /html|svg|xslt?\b/iu.test(type)

/** Whether the body is relayed as it arrives: events, or audio, which clients play from its beginning. */
const isStream = (headers: UpstreamHeaders): boolean => {
  const type = headers["content-type"]
  return (
    typeof type === "string" && /^(?:text\/event-stream|audio\/|application\/octet-)/u.test(type)
  )
}
