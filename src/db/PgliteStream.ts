import { Duplex } from "node:stream"

/**
 * How long batches may follow each other in one turn of the event loop, in milliseconds. Without a limit, clients that
 * wait for the only connection would keep it until the last of them has been served: no request would be read meanwhile.
 */
const turnMillisMax = 5

/**
 * One connection of `@effect/sql-pg` to PGlite, in memory: a `Duplex` that passes wire-protocol messages to
 * `execProtocolRawStream`.
 *
 * PGlite has one session. A startup message takes it over and resets it, so that a connection never sees the state of
 * the previous connection; a stream that has lost the session is destroyed. PGlite runs each batch synchronously, so a
 * cancel request always comes too late and only ends its own connection.
 */
export class PgliteStream extends Duplex {
  readonly #session: PgliteSession
  #started = false
  /** Bytes of the incomplete batch. */
  #pending: Uint8Array = Buffer.alloc(0)
  /** When the first batch of this turn of the event loop began, in milliseconds of `performance.now()`. */
  #turnAt: number | undefined

  constructor(session: PgliteSession) {
    super({ allowHalfOpen: false })
    this.#session = session
  }

  override _read() {}

  override _write(
    chunk: Uint8Array,
    _encoding: BufferEncoding,
    callback: (error?: Error | null) => void
  ) {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    const turnAt = (this.#turnAt ??= this.#beginTurn())
    const failure = this.#started || this.#start() ? this.#runBatches() : undefined
    // The next batch may enter PGlite only after the response was pushed
    if (performance.now() - turnAt < turnMillisMax) callback(failure)
    else setImmediate(callback, failure)
  }

  #beginTurn(): number {
    setImmediate(() => (this.#turnAt = undefined))
    return performance.now()
  }

  override _final(callback: (error?: Error | null) => void) {
    this.push(null)
    callback()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void) {
    this.#session.release(this)
    this.#pending = Buffer.alloc(0)
    callback(error)
  }

  /** Responds to what may precede the startup message; returns true once the stream has the session. */
  #start(): boolean {
    while (!this.#started) {
      const length = this.#pending.length < 8 ? Infinity : uint32(this.#pending, 0)
      if (this.#pending.length < length) return false
      const code = uint32(this.#pending, 4)
      const packet = this.#pending.subarray(0, length)
      this.#pending = this.#pending.subarray(length)
      switch (code) {
        case codes.ssl:
        case codes.gssapi:
          this.push("N")
          break
        case codes.cancel:
          this.destroy()
          return false
        default:
          this.#started = true
          this.#respond(this.#session.take(this, packet))
      }
    }
    return true
  }

  /** Runs each complete batch. An incomplete one waits for its end. */
  #runBatches(): Error | undefined {
    let start = 0
    let offset = 0
    while (offset + 5 <= this.#pending.length) {
      const end = offset + 1 + uint32(this.#pending, offset + 1)
      if (end > this.#pending.length) break
      const type = this.#pending[offset]
      offset = end
      if (type === messages.terminate) {
        this.#pending = Buffer.alloc(0)
        this.push(null)
        return undefined
      }
      if (!batchEnds.has(type ?? 0)) continue
      this.#respond(
        this.#session.run(this, this.#pending.subarray(start, end), type !== messages.flush)
      )
      start = end
    }
    this.#pending = start === this.#pending.length ? Buffer.alloc(0) : this.#pending.subarray(start)
    return undefined
  }

  #respond(response: BatchResponse) {
    if (response.failure !== undefined) {
      response.failure.then((cause) => this.destroy(cause))
    } else if (response.bytes.length > 0) {
      this.push(response.bytes)
    }
  }
}

/** PGlite's response. After a failure the session can no longer be used. */
interface BatchResponse {
  readonly bytes: Uint8Array
  readonly failure: Promise<Error> | undefined
}

/** The part of PGlite that a session uses. */
export interface PgliteEngine {
  readonly isInTransaction: () => boolean
  readonly execProtocolRawStream: (
    batch: Uint8Array,
    options: { readonly syncToFs: boolean; readonly onRawData: (bytes: Uint8Array) => void }
  ) => Promise<void>
}

/** The only session of a PGlite, and the stream that currently has it. */
export class PgliteSession {
  readonly #pglite: PgliteEngine
  readonly #broken: () => Error | undefined
  #owner: PgliteStream | undefined

  /** `broken` returns a failure after which the store must not be used, such as a failed fsync. */
  constructor(pglite: PgliteEngine, broken: () => Error | undefined = () => undefined) {
    this.#pglite = pglite
    this.#broken = broken
  }

  /** For `PgClient.make({ stream, maxConnections: 1 })`. */
  readonly connect = (): Duplex => new PgliteStream(this)

  take(stream: PgliteStream, startup: Uint8Array): BatchResponse {
    const before = this.#owner
    this.#owner = stream
    before?.destroy(new Error("The session was taken over by a newer connection"))
    const reset = this.run(
      stream,
      this.#pglite.isInTransaction() ? rollbackAndDiscard : discard,
      true
    )
    return reset.failure === undefined ? this.run(stream, startup, true) : reset
  }

  release(stream: PgliteStream) {
    if (this.#owner === stream) this.#owner = undefined
  }

  run(stream: PgliteStream, batch: Uint8Array, ready: boolean): BatchResponse {
    if (this.#owner !== stream) return failed(new Error("This connection has lost the session"))
    const brokenBefore = this.#broken()
    if (brokenBefore !== undefined) return failed(brokenBefore)
    const parts: Array<Uint8Array> = []
    // A copy: the memory behind `bytes` belongs to PGlite and is reused
    const onRawData = (bytes: Uint8Array) => void parts.push(Buffer.from(bytes))
    const done = this.#pglite.execProtocolRawStream(batch, { syncToFs: false, onRawData })
    // It ran synchronously, so the promise only carries its error
    const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts)
    const broken = this.#broken()
    if (broken === undefined && (!ready || endsReady(bytes))) {
      done.catch((cause: unknown) => stream.destroy(toError(cause)))
      return { bytes, failure: undefined }
    }
    const fallback = broken ?? new Error("PGlite ended its response before ReadyForQuery")
    return { bytes: Buffer.alloc(0), failure: done.then(() => fallback, toError) }
  }
}

const failed = (error: Error): BatchResponse => ({
  bytes: Buffer.alloc(0),
  failure: Promise.resolve(error)
})

const toError = (cause: unknown): Error =>
  cause instanceof Error ? cause : new Error("PGlite failed", { cause })

const uint32 = (bytes: Uint8Array, offset: number): number =>
  new DataView(bytes.buffer, bytes.byteOffset + offset, 4).getUint32(0)

/** Request codes, which occupy the position of a startup message's version. */
const codes = { cancel: 80877102, ssl: 80877103, gssapi: 80877104 }

const messages = {
  query: 0x51,
  functionCall: 0x46,
  sync: 0x53,
  flush: 0x48,
  terminate: 0x58,
  readyForQuery: 0x5a
}

/** After these messages the client waits for a response. */
const batchEnds = new Set([messages.query, messages.functionCall, messages.sync, messages.flush])

/** Whether the bytes end with ReadyForQuery: `Z`, length 5, status. */
const endsReady = (bytes: Uint8Array): boolean =>
  bytes.length >= 6 &&
  bytes[bytes.length - 6] === messages.readyForQuery &&
  uint32(bytes, bytes.length - 5) === 5

const sync = Uint8Array.of(messages.sync, 0, 0, 0, 4)

const query = (sql: string): Buffer => {
  const bytes = Buffer.alloc(6 + Buffer.byteLength(sql))
  bytes[0] = messages.query
  bytes.writeUInt32BE(bytes.length - 1, 1)
  bytes.write(sql, 5)
  return bytes
}

/**
 * `DISCARD ALL` without `DISCARD PLANS`, whose absence no connection notices. Replanning the functions would take a
 * sixth of a gateway's startup on an open store.
 */
export const forgetSession =
  "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; UNLISTEN *; " +
  "SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES"

/** `Sync` first, because the previous connection may have ended within a failed batch. */
const discard = Buffer.concat([sync, query(forgetSession)])
const rollbackAndDiscard = Buffer.concat([sync, query("ROLLBACK"), query(forgetSession)])
