import { Readable } from "node:stream"
import { errors } from "undici"
import type { Dispatcher } from "undici"

/** Observes a call, and its stream when that is relayed; may remove parts of the stream. */
export interface StreamWatch {
  /** The request goes out: from now on the upstream may execute it. */
  readonly sent: () => void
  /** It was refused or it failed: nothing is charged for it. */
  readonly refused: () => void
  /** Whether the next chunk may be relayed at once: the hold of the call is certainly there. Cheap. */
  readonly isHeld: () => boolean
  /** Takes the hold again. Calls `done` once. */
  readonly retake: (done: (isHeld: boolean) => void) => void
  /** The hold is gone: charges what was relayed, and returns the event that ends the stream. */
  readonly lose: () => Buffer
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

const noBytes = Buffer.alloc(0)

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
  /** Chunks that wait until the hold of the call is taken again. */
  #unheld: Array<Buffer> | undefined
  /** The upstream ended while they waited. */
  #isLast = false

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
    if (this.#mustWait()) {
      this.#wait(chunk)
      return false
    }
    const relayed = this.#watch.push(chunk)
    return relayed.length === 0 || this.#body === undefined || this.#body.push(relayed)
  }

  finish(): void {
    this.#isLast = true
    if (this.#isOver || this.#unheld !== undefined) return
    if (this.#mustWait()) return this.#wait(noBytes)
    const rest = this.#watch.flush()
    if (rest.length > 0) this.#body?.push(rest)
    this.#end("complete")
    this.#body?.push(null)
  }

  breakOff(error: Error): void {
    // After `#lose` the client still reads why
    if (this.#isOver) return
    this.#end("broken")
    this.#body?.destroy(error)
  }

  resume(): void {
    this.#controller?.resume()
  }

  /** The client needs no more, because it left or has everything. */
  leave(): void {
    this.#body = undefined
    if (this.#isOver || !this.#watch.readsOn(() => this.#stop())) return this.#stop()
    // Nothing is relayed any more, so nothing waits for the hold
    this.#relayWaiting()
  }

  /** A chunk reaches the client only while its call is held. */
  #mustWait(): boolean {
    return this.#body !== undefined && (this.#unheld !== undefined || !this.#watch.isHeld())
  }

  /** Keeps a chunk back; the upstream pauses meanwhile. */
  #wait(chunk: Buffer): void {
    if (this.#unheld !== undefined) {
      this.#unheld.push(chunk)
      return
    }
    this.#unheld = [chunk]
    this.#watch.retake((isHeld) => {
      // The client left meanwhile
      if (this.#isOver || this.#unheld === undefined) return
      if (isHeld) this.#relayWaiting()
      else this.#lose()
    })
  }

  #relayWaiting(): void {
    const chunks = this.#unheld ?? []
    this.#unheld = undefined
    for (const chunk of chunks) this.receive(chunk)
    if (this.#isLast) this.finish()
    else this.resume()
  }

  #lose(): void {
    this.#isOver = true
    this.#body?.push(this.#watch.lose())
    this.#body?.push(null)
    this.#stop()
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
