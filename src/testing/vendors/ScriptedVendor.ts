import { Duration } from "effect"
import { extensionOf } from "../../catalog/media/Formats.ts"
import { ScriptRun } from "../../vendors/mock/MockScript.ts"
import type { MockRefusal, MockScript, MockStep } from "../../vendors/mock/MockScript.ts"
import { pixel } from "../../vendors/mock/Pixel.ts"
import type { ResultItem } from "../../vendors/VendorClient.ts"
import type { AnswerOf } from "./Calls.ts"
import type { Ending, Job, MadeFile, Order, Protocol, Vendor, MadeKind } from "./Protocol.ts"
import type { VendorRequest } from "./VendorRequest.ts"

export interface VendorServerOptions {
  /**
   * The outcome of each submit or call, for all models or by the vendor's model id. `after` is measured by the
   * machine's clock. Models without a script return the ordered results immediately.
   */
  readonly script?: MockScript
  /**
   * The response of a language model to a request: a text, or `{ name, arguments }` to call a tool. Default: the
   * sandbox's response.
   */
  readonly answer?: AnswerOf
  /** The key that is accepted. Default: one in the vendor's format. */
  readonly key?: string
  /** Default: a free port. */
  readonly port?: number
}

interface ScriptedJob extends Job {
  readonly step: MockStep | undefined
  readonly endsAt: number
}

/** The header of an MP4 file, by which it is recognized. There is no content after it. */
const mp4Head = Buffer.from("0000001866747970697336660000020069736f6d69736f32", "hex")

/** The longest delay of Node's timers, which fire longer ones at once: 24 days, more than any test takes. */
const timerMillisMax = 2 ** 31 - 1

const millisOf = (after: Duration.Input): number =>
  Duration.toMillis(Duration.fromInputUnsafe(after))

/** The jobs of a vendor, which end according to its script. */
export class ScriptedVendor implements Vendor {
  /** Set once the port is known. */
  url = ""
  readonly key: string
  readonly pageSize = 100
  readonly jobs = new Map<string, ScriptedJob>()
  readonly #name: string
  readonly #protocol: Protocol
  readonly #script: ScriptRun
  readonly #files = new Map<string, MadeFile>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #answer: AnswerOf | undefined
  #isStopped = false

  constructor(name: string, protocol: Protocol, { answer, key, script }: VendorServerOptions) {
    this.#answer = answer
    this.#name = name
    this.#protocol = protocol
    this.#script = new ScriptRun(script ?? {})
    this.key = key ?? protocol.key
    for (const step of this.#script.steps) this.check(step)
  }

  /** Throws if the vendor's wire format cannot express this step. */
  check(step: MockStep): void {
    if (step._tag === "Result") return
    const kind = step.error.class
    const isKnown =
      step._tag === "JobFails"
        ? this.#protocol.jobFailures.has(kind)
        : kind === "AMBIGUOUS" || this.#protocol.refusal(kind) !== undefined
    const what = step._tag === "JobFails" ? "that a job failed" : "that a request was refused"
    if (!isKnown)
      throw new RangeError(`${this.#name} has no response that says ${what} with ${kind}`)
  }

  get listedJobs(): ReadonlyArray<Job> {
    return [...this.jobs.values()]
  }

  /** Counts the request's step and returns its refusal, if the step is one. */
  refusalOf(request: VendorRequest): MockRefusal | undefined {
    const model = this.#protocol.modelOf(request)
    const step = this.#script.next(model)
    if (step?._tag !== "Refused") return undefined
    this.#script.take(model)
    return step
  }

  /** Counts the request and returns its step. */
  take(request: VendorRequest): MockStep | undefined {
    const model = this.#protocol.modelOf(request)
    return this.#script.stepAt(model, this.#script.take(model))
  }

  buy(request: VendorRequest, order: Order = {}): Job {
    const step = this.take(request)
    const createdAt = Date.now()
    const id = `${order.prefix ?? ""}${crypto.randomUUID()}`
    const { callbackUrl } = order
    const job: ScriptedJob = {
      id,
      model: this.#protocol.modelOf(request),
      body: order.body ?? request.json,
      path: request.path,
      createdAt,
      count: order.count ?? 1,
      polls: 0,
      isCancelled: false,
      ...(callbackUrl === undefined ? {} : { callbackUrl }),
      step,
      endsAt: createdAt + (step === undefined ? 0 : millisOf(step.after))
    }
    this.jobs.set(id, job)
    if (callbackUrl !== undefined) this.#later(job.endsAt, () => this.#callBack(job, callbackUrl))
    return job
  }

  poll(id: string): Job | undefined {
    const job = this.jobs.get(id)
    if (job === undefined || this.#isLost(job)) return undefined
    job.polls += 1
    return job
  }

  #isLost(job: ScriptedJob): boolean {
    const { step } = job
    return step?._tag === "JobFails" && step.error.class === "LOST" && !this.isRunning(job)
  }

  isRunning({ id, isCancelled }: Job): boolean {
    const endsAt = this.jobs.get(id)?.endsAt ?? 0
    return !isCancelled && Date.now() < endsAt
  }

  ended({ id }: Job): Promise<void> {
    return this.#until(this.jobs.get(id)?.endsAt ?? 0)
  }

  /** Resolves after this time, unless the server has been stopped. */
  wait(after: Duration.Input): Promise<void> {
    return this.#until(Date.now() + millisOf(after))
  }

  endingOf(job: Job, kind: MadeKind): Ending {
    const step = this.jobs.get(job.id)?.step
    if (step?._tag === "JobFails") {
      const { class: failure, message } = step.error
      return { _tag: "Failed", kind: failure, message }
    }
    const items = step?._tag === "Result" ? step.items : ordered(job.count, kind)
    return { _tag: "Made", files: items.map((item, index) => this.#fileOf(job, item, index)) }
  }

  answerOf(request: VendorRequest): ReturnType<AnswerOf> {
    return this.#answer?.(request)
  }

  forget(id: string): boolean {
    return this.jobs.delete(id)
  }

  /** A result that this server hosts. */
  fileAt(path: string): MadeFile | undefined {
    return this.#files.get(path)
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers) clearTimeout(timer)
  }

  #fileOf({ id }: Job, item: ResultItem, index: number): MadeFile {
    if (item._tag !== "Bytes") {
      const mime = item._tag === "Url" ? item.mime : "application/octet-stream"
      return { url: item.url, mime, bytes: pixel }
    }
    const { bytes, mime } = item
    const path = `/results/${id}-${index}.${extensionOf(mime)}`
    const file = { url: `${this.url}${path}`, mime, bytes }
    this.#files.set(path, file)
    return file
  }

  #until(at: number): Promise<void> {
    return new Promise((resolve) => this.#later(at, resolve))
  }

  #later(at: number, work: () => void): void {
    if (this.#isStopped) return
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer)
        work()
      },
      Math.min(timerMillisMax, Math.max(0, at - Date.now()))
    )
    this.#timers.add(timer)
  }

  /** Sends the callback once. A gateway that misses it polls. */
  #callBack(job: ScriptedJob, url: string): void {
    if (job.isCancelled || this.#isLost(job)) return
    const callback = this.#protocol.callback?.(job, this, Date.now())
    if (callback === undefined) return
    const headers = { "content-type": "application/json", ...callback.headers }
    fetch(url, { method: "POST", headers, body: callback.body }).catch(() => undefined)
  }
}

const samples: Readonly<Record<MadeKind, readonly [mime: string, bytes: Uint8Array]>> = {
  image: ["image/png", pixel],
  video: ["video/mp4", mp4Head],
  audio: ["audio/mpeg", Buffer.from("ID3\u0004\0\0\0\0\0\0", "latin1")],
  mesh: ["model/gltf-binary", Buffer.from("glTF\u0002\0\0\0\u000c\0\0\0", "latin1")],
  document: ["application/json", Buffer.from('{"played":true}')]
}

const ordered = (count: number, kind: MadeKind): ReadonlyArray<ResultItem> => {
  const [mime, bytes] = samples[kind]
  return Array.from({ length: count }, () => ({ _tag: "Bytes", mime, bytes }))
}
