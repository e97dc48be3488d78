import { ByteSize, Effect } from "effect"
import { HttpIncomingMessage, HttpServerRequest } from "effect/http"
import { Buffer } from "node:buffer"
import { IncomingMessage } from "node:http"
import { problem } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { inHeavyTurn, inSlices, sliceBytes } from "../../../domain/shares/Slices.ts"
import type { Sliced } from "../../../domain/shares/Slices.ts"
import { sendContinue } from "../listener/Listener.ts"

/** Inspects a body as it arrives, and returns its fault as soon as it is known. */
export interface BodyWatch {
  readonly add: (chunk: Uint8Array) => string | undefined
}

/** Requests whose bodies were refused before they had arrived completely. */
const cutOff = new WeakSet<object>()

/** Gives up a body that has not arrived. Its connection closes, and data that arrives until then is discarded. */
export const cutOffBody = (source: IncomingMessage): void => {
  cutOff.add(source)
  discardBody(source)
}

/** Discards arriving data one chunk per turn, because Node would read up to 2 MiB in a turn. `hostile` */
export const discardBody = (source: IncomingMessage): void => {
  source.on("data", ({ length }: Buffer) => {
    source.pause()
    inHeavyTurn(() => source.resume(), length)
  })
  source.resume()
}

/** Whether the rest of the body is not read, so that the connection must close. */
export const isCutOff = (source: object): boolean => cutOff.has(source)

/**
 * Reads the body of the request. If the watch finds a fault, refuses the body with 2002 at once and does not read the
 * rest. docs/reference/http.md#request-bodies
 */
export const readBytes = Effect.fnUntraced(function* (watch: BodyWatch) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { source } = request
  if (source instanceof IncomingMessage) {
    const size = yield* HttpIncomingMessage.MaxBodySize
    const bytesMax = size === undefined ? Infinity : ByteSize.toNumberUnsafe(size)
    return yield* readSource(source, watch, bytesMax)
  }
  const bytes = new Uint8Array(yield* request.arrayBuffer)
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    const fault = watch.add(bytes.subarray(at, at + sliceBytes))
    if (fault !== undefined) return yield* problem(2002, fault)
  }
  return bytes
})

/** The same for a request of Node. */
export const readSource = (
  source: IncomingMessage,
  watch: BodyWatch,
  bytesMax: number
): Effect.Effect<Uint8Array, Problem> =>
  Effect.flatMap(collect(source, watch, bytesMax), (blocks) =>
    blocks.length > 1 ? inSlices(() => joined(blocks)) : Effect.succeed(blocks[0] ?? noBytes)
  )

const collect = (source: IncomingMessage, watch: BodyWatch, bytesMax: number) =>
  Effect.callback<ReadonlyArray<Uint8Array>, Problem>((resume) => {
    const body = new CollectedBody(source.headers["content-length"], bytesMax)
    let isStopped = false
    /** The number of chunks taken from the source but not processed yet. */
    let waiting = 0
    let hasEnded = false
    const stop = () => {
      isStopped = true
      source.off("data", onData)
      source.off("end", onEnd)
      source.off("close", onClose)
    }
    const refuse = (fault: Problem) => {
      stop()
      cutOffBody(source)
      resume(Effect.fail(fault))
    }
    const read = (chunk: Buffer) => {
      const fault = watch.add(chunk)
      if (fault !== undefined) return refuse(problem(2002, fault))
      if (!body.add(chunk)) refuse(problem(2004, `The body is larger than ${bytesMax} bytes`))
    }
    const onData = (chunk: Buffer) => {
      if (chunk.length < heavyChunkBytesMin && waiting === 0) return read(chunk)
      // Otherwise the body limiter has paused the source and will resume it
      const resumes = !source.isPaused()
      if (resumes) source.pause()
      waiting += 1
      inHeavyTurn(() => {
        waiting -= 1
        if (isStopped) return
        read(chunk)
        if (isStopped) return
        if (hasEnded && waiting === 0) finish()
        else if (resumes) source.resume()
      }, chunk.length)
    }
    const finish = () => {
      stop()
      resume(Effect.succeed(body.take()))
    }
    // A paused source emits `end` once its last chunk has been taken, but that chunk may still be waiting here
    const onEnd = () => {
      hasEnded = true
      if (waiting === 0) finish()
    }
    const onClose = () => {
      if (hasEnded) return
      stop()
      resume(Effect.fail(unreadable))
    }
    source.on("end", onEnd)
    source.on("close", onClose)
    source.on("data", onData)
    sendContinue(source)
    return Effect.sync(stop)
  })

/** Chunks from this size on are heavy work: Node reads up to 2 MiB of each connection in a turn. */
const heavyChunkBytesMin = 16 * 1024

const unreadable = problem(2002, "The body could not be read")

const blockBytesMin = sliceBytes
const blockBytesMax = 64 * sliceBytes

/**
 * A body gets memory for its announced length only once this much has arrived. A body that is refused before then would
 * otherwise cost a collection of the whole heap every few requests. Benchmark: `hostile`, JSON bombs.
 */
const firstBytesMax = 1024 * 1024

/**
 * Collects a body in few blocks, however small its chunks are, because even a one-byte chunk takes a hundred bytes of
 * memory. A body of known length ends in one block.
 */
export class CollectedBody {
  readonly #blocks: Array<Buffer> = []
  readonly #announced: number
  readonly #bytesMax: number
  /** The free bytes of the last block. */
  #free = 0
  #length = 0

  constructor(announced: string | undefined, bytesMax: number) {
    this.#announced = Number(announced ?? 0)
    this.#bytesMax = bytesMax
  }

  /** `false` if the body is too large. */
  add(chunk: Buffer): boolean {
    if (this.#length + chunk.length > this.#bytesMax) return false
    if (this.#length === 0 && chunk.length === this.#announced) this.#blocks.push(chunk)
    else this.#copy(chunk)
    this.#length += chunk.length
    return true
  }

  /** Returns the blocks and drops them, because this object may live as long as its request. */
  take(): ReadonlyArray<Buffer> {
    const blocks = this.#blocks.splice(0)
    const last = blocks.pop()
    return last === undefined ? blocks : [...blocks, last.subarray(0, last.length - this.#free)]
  }

  #copy(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      const block = this.#free === 0 ? this.#grow() : this.#blocks.at(-1)
      if (block === undefined) return
      const copied = chunk.copy(block, block.length - this.#free, at)
      at += copied
      this.#free -= copied
    }
  }

  /** Adds a block, or replaces the first one with a block for the whole announced body. */
  #grow(): Buffer {
    const first = this.#announced > 0 ? this.#blocks.pop() : undefined
    const block = Buffer.allocUnsafeSlow(this.#bytesOfNext(first !== undefined))
    first?.copy(block)
    this.#blocks.push(block)
    this.#free = block.length - (first?.length ?? 0)
    return block
  }

  #bytesOfNext(hasFirst: boolean): number {
    if (this.#announced === 0) {
      return Math.min(Math.max(this.#length, blockBytesMin), blockBytesMax)
    }
    return hasFirst ? this.#announced : Math.min(this.#announced, firstBytesMax)
  }
}

const noBytes = new Uint8Array()

/** Joins the blocks in slices, because allocating memory for large bodies is slow. */
export function* joined(blocks: ReadonlyArray<Uint8Array>): Sliced<Uint8Array> {
  const [first = noBytes, ...rest] = blocks
  if (rest.length === 0) return first
  const bytes = Buffer.allocUnsafeSlow(blocks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const block of blocks) {
    bytes.set(block, at)
    at += block.length
    yield
  }
  return bytes
}
