import type { IncomingMessage } from "node:http"
import { smallBodyBytesMax } from "../../../domain/limits/Limits.ts"
import { expireRequest } from "../listener/Listener.ts"

/** An admitted large body: its bytes in memory, and the bytes granted from its user's share. */
export class ArrivingBody {
  granted: number
  arrived = 0
  isComplete = false
  readonly #source: IncomingMessage
  readonly #capacity: { readonly user: UserCapacity; readonly all: BodyCapacity }
  #isPaused = false
  #isGone = false
  #sinceRead = 0
  #waited = false

  constructor(
    source: IncomingMessage,
    capacity: { readonly user: UserCapacity; readonly all: BodyCapacity },
    granted: number
  ) {
    this.#source = source
    this.#capacity = capacity
    this.granted = granted
    capacity.user.add(this)
    // Adding a `data` listener now would start the flow before the reader is ready
    const onListener = (event: string | symbol) => {
      if (event !== "data") return
      source.off("newListener", onListener)
      source.on("data", (chunk: Uint8Array) => this.#add(chunk.length))
    }
    source.on("newListener", onListener)
    source.once("end", () => {
      this.isComplete = true
      if (!this.#isGone) capacity.user.complete(this)
    })
  }

  /** Bytes received since the last call; `undefined` if the service paused the sender in the meantime. */
  receivedSinceLast(): number | undefined {
    const bytes = this.#waited ? undefined : this.#sinceRead
    this.#sinceRead = 0
    this.#waited = this.#isPaused
    return bytes
  }

  /** Call when the body is no longer used. Bytes that arrive later do not count. */
  leave(): void {
    this.#isGone = true
    this.#capacity.user.leave(this)
    this.#capacity.all.leave(this)
  }

  /** Ends the request with 408 and closes its connection. */
  expire(): void {
    expireRequest(this.#source)
  }

  resume(): void {
    this.#isPaused = false
    this.#source.resume()
  }

  #add(bytes: number): void {
    if (this.#isGone) return
    this.arrived += bytes
    this.#sinceRead += bytes
    const { all, user } = this.#capacity
    all.used += bytes
    if (!user.covers(this)) all.pass(this)
    else if (this.arrived <= smallBodyBytesMax || all.covers(this)) return
    this.#isPaused = true
    this.#waited = true
    this.#source.pause()
  }
}

/**
 * Counts the bytes in memory of all large bodies. Above `max` only one body may continue, so that one can always
 * complete.
 */
export class BodyCapacity {
  used = 0
  readonly #max: number
  readonly #waiting = new Set<ArrivingBody>()
  #first: ArrivingBody | undefined

  constructor(max: number) {
    this.#max = max
  }

  covers(body: ArrivingBody): boolean {
    if (this.used <= this.#max) return true
    this.#first ??= body
    if (this.#first === body) return true
    this.#waiting.add(body)
    return false
  }

  leave(body: ArrivingBody): void {
    this.used -= body.arrived
    this.#waiting.delete(body)
    this.pass(body)
    this.#resume()
  }

  /** Lets another body continue, because this one waits for its user's other bodies, which may be waiting here. */
  pass(body: ArrivingBody): void {
    if (this.#first !== body) return
    this.#first = undefined
    this.#resume()
  }

  #resume(): void {
    for (const next of this.#waiting) {
      if (!this.covers(next)) return
      this.#waiting.delete(next)
      next.resume()
    }
  }
}

/**
 * The share of one user. A body with a known length takes all its bytes before it is read. One without takes a little,
 * and doubles its grant each time that much has arrived. A complete body keeps only the bytes that it has.
 */
export class UserCapacity {
  #free: number
  readonly #max: number
  readonly #bodies = new Set<ArrivingBody>()
  readonly #growing = new Set<ArrivingBody>()
  readonly #entering = new Set<{ readonly bytes: number; readonly enter: () => void }>()

  constructor(max: number) {
    this.#max = max
    this.#free = max
  }

  get isEmpty(): boolean {
    return this.#bodies.size === 0 && this.#entering.size === 0
  }

  /** Calls `enter` once the bytes have been taken. Returns a function that cancels the wait. */
  take(bytes: number, enter: () => void): () => void {
    const waiting = { bytes, enter }
    this.#entering.add(waiting)
    this.#give(0)
    return () => this.#entering.delete(waiting)
  }

  add(body: ArrivingBody): void {
    this.#bodies.add(body)
  }

  covers(body: ArrivingBody): boolean {
    if (body.arrived <= body.granted) return true
    const rest = this.#max - body.granted
    const more = Math.min(Math.max(body.granted, body.arrived - body.granted), rest)
    // A body that already has the whole share is too large, and its reader refuses it
    if (more <= this.#free) {
      this.#free -= more
      body.granted += more
      return true
    }
    this.#growing.add(body)
    // If all bodies of the user wait to grow, the last one gives way
    if (this.#growing.size === this.#bodies.size) [...this.#growing].at(-1)?.expire()
    return false
  }

  complete(body: ArrivingBody): void {
    const rest = Math.max(0, body.granted - body.arrived)
    body.granted -= rest
    this.#give(rest)
  }

  leave(body: ArrivingBody): void {
    this.#bodies.delete(body)
    this.#growing.delete(body)
    this.#give(body.granted)
  }

  #give(bytes: number): void {
    this.#free += bytes
    for (const body of this.#growing) {
      if (!this.covers(body)) break
      this.#growing.delete(body)
      body.resume()
    }
    for (const waiting of this.#entering) {
      if (waiting.bytes > this.#free) return
      this.#entering.delete(waiting)
      this.#free -= waiting.bytes
      waiting.enter()
    }
  }
}
