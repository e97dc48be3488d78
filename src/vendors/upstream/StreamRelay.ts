import { Readable } from "node:stream"
import { errors } from "undici"
import type { Dispatcher } from "undici"

/** Observes a call and, if it is relayed, its stream; may remove parts of the stream. */
export interface StreamWatch {
  /** The request is being sent: from now on the upstream may execute it. */
  readonly sent: () => void
  /** The call was refused or failed: nothing is charged for it. */
  readonly refused: () => void
  /** What is relayed is one JSON document, not events. Called before the first chunk. */
  readonly document: () => void
  /** Whether the next chunk may be relayed at once, because the call's hold certainly exists and covers it. Cheap. */
  readonly isHeld: () => boolean
  /** Takes the hold again, or raises it. Calls `done` once. */
  readonly retake: (done: (isHeld: boolean) => void) => void
  /**
   * Called when the hold is lost or cannot grow. Charges for the relayed part and returns the event that ends the
   * stream. If that is empty, the stream is cut off.
   */
  readonly lose: () => Buffer
  /**
   * Receives a chunk and returns what is relayed. The watch keeps what the hold does not cover (`isHeld` is then false)
   * and adds it to the next push.
   */
  readonly push: (chunk: Buffer) => Buffer
  /** Returns what is left at the regular end. */
  readonly flush: () => Buffer
  /**
   * The client left before the end. `true`: the watch still receives chunks until the upstream ends or the watch
   * calls `stop`. `false`: the upstream is closed at once.
   */
  readonly readsOn: (stop: () => void) => boolean
  /** Called once: the stream ended, the upstream broke it, or it was closed after the client had left. */
  readonly ended: (how: "complete" | "broken" | "abandoned") => void
}

/** Relays everything, charges nothing, and reads nothing that the client does not want. */
export const unwatched: StreamWatch = {
  sent: () => {},
  refused: () => {},
  document: () => {},
  isHeld: () => true,
  retake: (done) => done(true),
  lose: () => noBytes,
  push: (chunk) => chunk,
  flush: () => noBytes,
  readsOn: () => false,
  ended: () => {}
}

/** The source of a stream: an exchange with a vendor, or the simulator. */
export type StreamSource = Pick<Dispatcher.DispatchController, "resume" | "abort">

/** Bytes buffered for a slow client before the upstream is paused. */
const streamBufferBytes = 64 * 1024

const noBytes = Buffer.alloc(0)

const aborted = new errors.RequestAbortedError()

/** The body that the client pulls. */
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
 * A running stream. undici pushes, the client pulls, and back pressure pauses the upstream. Once the client has left,
 * the relay drops it, so that a stream that is still read for the watch keeps neither request nor response in memory.
 */
export class StreamRelay {
  readonly #watch: StreamWatch
  #source: StreamSource | undefined
  /** Present until the client leaves. */
  #body: RelayedBody | undefined
  #isOver = false
  /** Chunks that wait until the hold of the call is taken again. */
  #unheld: Array<Buffer> | undefined
  /** The upstream ended while chunks waited. */
  #isLast = false

  constructor(watch: StreamWatch, source?: StreamSource) {
    this.#watch = watch
    this.#source = source
  }

  /** The body of the response. Called once. */
  open(): Readable {
    this.#body = new RelayedBody(this)
    return this.#body
  }

  /** Whether no more data is received. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Returns `false` if the upstream must pause. */
  receive(chunk: Buffer): boolean {
    if (chunk.length === 0 || this.#isOver) return true
    if (this.#mustWait()) {
      this.#wait(chunk)
      return false
    }
    return this.#relay(chunk)
  }

  /** Relays what the hold covers, and pauses the upstream until the rest is covered. */
  #relay(chunk: Buffer): boolean {
    const relayed = this.#watch.push(chunk)
    const mayContinue = relayed.length === 0 || this.#body === undefined || this.#body.push(relayed)
    if (!this.#mustWait()) return mayContinue
    this.#wait(noBytes)
    return false
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
    // After `#lose` the client still reads the reason
    if (this.#isOver) return
    this.#end("broken")
    this.#body?.destroy(error)
  }

  resume(): void {
    this.#source?.resume()
  }

  /** The client needs no more data: it left, or it has everything. */
  leave(): void {
    this.#body = undefined
    if (this.#isOver || !this.#watch.readsOn(() => this.#stop())) return this.#stop()
    // No more data is relayed, so no chunk needs to wait for the hold
    this.#relayWaiting()
  }

  /** A chunk reaches the client only while its call is held. */
  #mustWait(): boolean {
    return this.#body !== undefined && (this.#unheld !== undefined || !this.#watch.isHeld())
  }

  /** Holds a chunk back; the upstream pauses in the meantime. */
  #wait(chunk: Buffer): void {
    if (this.#unheld !== undefined) {
      this.#unheld.push(chunk)
      return
    }
    this.#unheld = [chunk]
    this.#watch.retake((isHeld) => {
      // The client left in the meantime
      if (this.#isOver || this.#unheld === undefined) return
      if (isHeld) this.#relayWaiting()
      else this.#lose()
    })
  }

  #relayWaiting(): void {
    const chunks = this.#unheld ?? []
    this.#unheld = undefined
    for (const chunk of chunks) {
      if (this.#mustWait()) this.#wait(chunk)
      else this.#relay(chunk)
    }
    // The rest waits again
    if (this.#unheld !== undefined) return
    if (this.#isLast) this.finish()
    else this.resume()
  }

  #lose(): void {
    this.#isOver = true
    const last = this.#watch.lose()
    if (last.length === 0) this.#body?.destroy(new Error("The hold of the call is gone"))
    else {
      this.#body?.push(last)
      this.#body?.push(null)
    }
    this.#stop()
  }

  #stop(): void {
    this.#end("abandoned")
    this.#source?.abort(aborted)
    this.#source = undefined
  }

  #end(how: "complete" | "broken" | "abandoned"): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#watch.ended(how)
  }
}
