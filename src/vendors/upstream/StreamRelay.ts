import { Readable } from "node:stream"
import { errors } from "undici"
import type { Dispatcher } from "undici"

/** Observes a call, and its stream when that is relayed; may remove parts of the stream. */
export interface StreamWatch {
  /** The request goes out: from now on the upstream may execute it. */
  readonly sent: () => void
  /** It was refused or it failed: nothing is charged for it. */
  readonly refused: () => void
  /** Receives a chunk, returns what is relayed. */
  readonly push: (chunk: Buffer) => Buffer
  /** Returns the rest at the regular end. */
  readonly flush: () => Buffer
  /**
   * The client left before the end. `true`: the watch still receives what comes, until the upstream ends or
   * the watch calls `stop`. `false`: the upstream is closed at once.
   */
  readonly readsOn: (stop: () => void) => boolean
  /** Called once: the stream ended, the upstream broke it, or it was closed after the client had left. */
  readonly ended: (how: "complete" | "broken" | "abandoned") => void
}

/** Buffered for a slow client before the upstream is paused. */
const streamBufferBytes = 64 * 1024

const aborted = new errors.RequestAbortedError()

/** What the client pulls. */
class RelayedBody extends Readable {
  readonly #relay: StreamRelay

  constructor(relay: StreamRelay) {
    super({ highWaterMark: streamBufferBytes })
    this.#relay = relay
    // Without a reader an error event would end the process
    this.on("error", () => {})
  }

  override _read(): void {
    this.#relay.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#relay.leave()
    callback(error)
  }
}

/**
 * A stream on its way: undici pushes, the client pulls, back pressure pauses the upstream. When the client has
 * left, the relay forgets it: what is read on for the watch keeps neither request nor response.
 */
export class StreamRelay {
  readonly #watch: StreamWatch
  #controller: Dispatcher.DispatchController | undefined
  /** Until the client leaves. */
  #body: RelayedBody | undefined
  #isOver = false

  constructor(watch: StreamWatch, controller?: Dispatcher.DispatchController) {
    this.#watch = watch
    this.#controller = controller
  }

  /** The body of the response. Called once. */
  open(): Readable {
    this.#body = new RelayedBody(this)
    return this.#body
  }

  /** Nothing is received any more. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Returns `false` when the upstream has to pause. */
  receive(chunk: Buffer): boolean {
    if (chunk.length === 0 || this.#isOver) return true
    const relayed = this.#watch.push(chunk)
    return relayed.length === 0 || this.#body === undefined || this.#body.push(relayed)
  }

  finish(): void {
    if (this.#isOver) return
    const rest = this.#watch.flush()
    if (rest.length > 0) this.#body?.push(rest)
    this.#end("complete")
    this.#body?.push(null)
  }

  breakOff(error: Error): void {
    this.#end("broken")
    this.#body?.destroy(error)
  }

  resume(): void {
    this.#controller?.resume()
  }

  /** The client needs no more, because it left or has everything. */
  leave(): void {
    this.#body = undefined
    if (!this.#isOver && this.#watch.readsOn(() => this.#stop())) this.resume()
    else this.#stop()
  }

  #stop(): void {
    this.#end("abandoned")
    this.#controller?.abort(aborted)
    this.#controller = undefined
  }

  #end(how: "complete" | "broken" | "abandoned"): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#watch.ended(how)
  }
}
