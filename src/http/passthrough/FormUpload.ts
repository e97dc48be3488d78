import { Effect } from "effect"
import { IncomingMessage } from "node:http"
import { Readable } from "node:stream"
import { SoundLength } from "../../catalog/media/SoundLength.ts"
import { notAForm } from "../../domain/forms/FormHead.ts"
import { FormReader } from "../../domain/forms/FormReader.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import type { Upload } from "../../passthrough/counted/Upload.ts"
import { sendContinue } from "../server/listener/Listener.ts"

/** The maximum size of the fields before the file. */
const headBytesMax = 1024 * 1024

/** How many bytes of a file are inspected: enough for a WAV header to describe its samples. */
const sniffedBytes = 64

/** The lowest bit rate of the supported audio formats: Opus at 6 kbit/s. */
const lowestBytesPerSecond = 750
/** The assumed bit rate of formats that do not state their length: 32 kbit/s, which is enough for speech. */
const usualBytesPerSecond = 4000

const cutOff = problem(2002, "The body could not be read")
const twoModels = "The form names the model twice"

/** A form that is read as it arrives, from a connection or within a test process. */
export class FormUpload implements Upload {
  readonly length: number | undefined
  readonly bytesMax: number
  readonly #source: Readable
  readonly #limit: number
  readonly #reader: FormReader
  readonly #sound = new SoundLength()
  #fileBytes = 0
  #sniffed: Buffer = Buffer.alloc(0)
  #arrived = 0
  #model: string | undefined
  /** What was read before the upload to the vendor began. */
  #head: Array<Buffer> = []
  #headBytes = 0
  #isEnded = false
  #isDiscarded = false
  #isSpent = false
  #problem: Problem | undefined
  /** Receives each chunk. */
  #take: (chunk: Buffer) => void = () => {}
  #stop: () => void = () => {}
  onModel: Upload["onModel"] = () => undefined

  constructor(source: Readable, boundary: string, announced: number | undefined, limit: number) {
    this.#source = source
    this.length = announced
    this.#limit = limit
    this.bytesMax = announced ?? limit
    this.#reader = new FormReader(boundary, {
      onField: (name, text) => (name === "model" ? this.#named(text) : undefined),
      onFile: (name) => (name === "model" ? "Expected the name of a model as a text" : undefined),
      onFileBytes: (bytes) => this.#fileHas(bytes)
    })
  }

  get model(): string | undefined {
    return this.#model
  }

  get isSpent(): boolean {
    return this.#isSpent
  }

  get isComplete(): boolean {
    return this.#isEnded
  }

  get problem(): Problem | undefined {
    return this.#problem
  }

  get bytesPerSecondMin(): number {
    return wavRateOf(this.#sniffed) ?? lowestBytesPerSecond
  }

  get seconds(): number {
    return this.#sound.seconds ?? this.#fileBytes / usualBytesPerSecond
  }

  /** Resolves when the beginning of the file has been read. For a WAV file it shows the maximum cost. */
  get head(): Effect.Effect<void, Problem> {
    return Effect.callback((resume) => {
      const settle = (fault: Problem | undefined) => {
        this.#source.pause()
        this.#take = () => {}
        this.#stop = () => {}
        resume(fault === undefined ? Effect.void : Effect.fail(fault))
      }
      this.#take = (chunk) => {
        this.#head.push(chunk)
        this.#headBytes += chunk.length
        const isKnown = this.#sniffed.length >= sniffedBytes || this.#reader.isEnded
        if (this.#problem !== undefined || isKnown) return settle(this.#problem)
        if (this.#headBytes > headBytesMax) {
          settle(problem(2004, `The fields before the file are larger than ${headBytesMax} bytes`))
        }
      }
      this.#stop = () => settle(this.#problem)
      this.#listen()
      return Effect.sync(() => {
        this.#take = () => {}
      })
    })
  }

  open(): Readable {
    const body = new SentBody(() => {
      this.#isSpent = true
      for (const chunk of this.#head.splice(0)) body.push(chunk)
      if (this.#isEnded || this.#problem !== undefined) this.#stop()
      else this.#source.resume()
    })
    this.#take = (chunk) => {
      if (this.#problem !== undefined) body.destroy(new Error(this.#problem.detail))
      else if (!body.push(chunk)) this.#source.pause()
    }
    this.#stop = () => {
      if (this.#problem === undefined) body.push(null)
      else body.destroy(new Error(this.#problem.detail))
    }
    return body
  }

  /** Discards the rest of the body, so that the connection can serve another request. */
  discard(): void {
    if (this.#isEnded) return
    this.#isDiscarded = true
    this.#source.resume()
  }

  #listen(): void {
    const source = this.#source
    source.on("end", () => {
      if (this.#isDiscarded) return
      // A form without its end is refused, because the vendor might find other parts in it
      if (!this.#reader.isEnded) this.#problem ??= problem(2002, notAForm)
      this.#isEnded = this.#problem === undefined
      this.#stop()
    })
    source.on("close", () => {
      if (this.#isEnded) return
      this.#problem ??= cutOff
      this.#stop()
    })
    source.on("error", () => {})
    source.on("data", (chunk: Buffer) => this.#receive(chunk))
    if (source instanceof IncomingMessage) sendContinue(source)
  }

  #receive(chunk: Buffer): void {
    if (this.#isDiscarded) return
    this.#arrived += chunk.length
    if (this.#arrived > this.#limit) {
      this.#problem ??= problem(2004, `The body is larger than ${this.#limit} bytes`)
    }
    const fault = this.#problem === undefined ? this.#reader.push(chunk) : undefined
    if (fault !== undefined) this.#problem ??= problem(2002, fault)
    this.#take(chunk)
  }

  #named(text: string): string | undefined {
    if (this.#model !== undefined) return twoModels
    this.#model = text
    if (text === "") {
      this.#problem = invalid([{ pointer: "#/model", detail: "Expected the name of a model" }])
    } else if (this.#fileBytes > 0) this.#problem ??= this.onModel(text)
    return undefined
  }

  #fileHas(bytes: Buffer): void {
    this.#fileBytes += bytes.length
    this.#sound.push(bytes)
    if (this.#sniffed.length < sniffedBytes) {
      this.#sniffed = Buffer.concat([this.#sniffed, bytes.subarray(0, sniffedBytes)])
    }
  }
}

/** Bytes per second of a WAV file, if its header is consistent. */
const wavRateOf = (bytes: Buffer): number | undefined => {
  if (bytes.length < 36 || bytes.toString("latin1", 0, 4) !== "RIFF") return undefined
  if (bytes.toString("latin1", 8, 16) !== "WAVEfmt ") return undefined
  const rate = bytes.readUInt32LE(28)
  return rate === bytes.readUInt32LE(24) * bytes.readUInt16LE(32) && rate > lowestBytesPerSecond
    ? rate
    : undefined
}

class SentBody extends Readable {
  readonly #more: () => void

  constructor(more: () => void) {
    super()
    this.#more = more
  }

  override _read(): void {
    this.#more()
  }
}
