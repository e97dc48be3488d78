import { Clock, Duration, Effect, Option, Schema, Stream } from "effect"
import { countOf } from "../catalog/Price.ts"
import type {
  CancelOutcome,
  Handle,
  Progress,
  ResultItem,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../vendors/VendorClient.ts"
import { VendorError } from "../vendors/VendorError.ts"
import { renderGlb } from "./media/GlbFile.ts"
import { renderMp4 } from "./media/Mp4Renderer.ts"
import { renderPng } from "./media/PngRenderer.ts"
import { renderTone } from "./media/Tone.ts"
import * as Unifont from "./media/Unifont.ts"
import { Plan, planOf, RenderedFields } from "./Plan.ts"
import { eventsOf, readResponseRequest, responseJobIn, resultOf } from "./ResponseJobs.ts"
import type { ResponseJob } from "./ResponseJobs.ts"
import { Ending, parse } from "./Script.ts"
import type { Script } from "./Script.ts"
import { hash } from "./Seed.ts"
import { simulatedLine } from "./SimulatedBatch.ts"

export interface SimulatorOptions {
  /** `SIMULATOR_DELAY`. The task id determines the time between the two bounds. */
  readonly delay?: { readonly min: Duration.Input; readonly max: Duration.Input }
  /** Run by `[[sim:crash=…]]`, for example to kill the process of a test. Default: nothing. */
  readonly crash?: Effect.Effect<void>
}

export interface Simulator {
  readonly account: VendorAccount
  /** The number of submits of a task that have bought a job since the process started. */
  readonly paidSubmits: (taskId: string) => Effect.Effect<number>
}

/** Everything that a poll needs, so that polls work after a restart of the process. */
const Job = Schema.Struct({
  taskId: Schema.String,
  model: Schema.String,
  submittedAtMillis: Schema.Finite,
  delayMillis: Schema.Finite,
  ending: Ending,
  /** Number of results: less than `plan.count` with `[[sim:partial=…]]`. */
  items: Schema.Int,
  plan: Plan,
  /** The body is described, so that its price may read any field of it. */
  isDescribed: Schema.optionalKey(Schema.Literal(true))
})
type Job = typeof Job.Type

const BatchJob = Schema.Struct({
  isBatch: Schema.Literal(true),
  taskId: Schema.String,
  submittedAtMillis: Schema.Finite,
  delayMillis: Schema.Finite,
  ending: Ending
})
type BatchJob = typeof BatchJob.Type
const batchJobIn = Schema.decodeUnknownOption(BatchJob)

const accountId = "simulator"
const pollMillis = 1000
const defaultDelay = { min: "2 seconds", max: "6 seconds" } as const

/** Errors in DashScope's form. docs/reference/vendors.md#dashscope-errors */
const failures = {
  unreadable: {
    class: "FATAL_CLIENT",
    httpStatus: 400,
    vendorCode: "InvalidParameter",
    message: "The simulator cannot read the body"
  },
  throttled: {
    class: "RATE_LIMITED",
    httpStatus: 429,
    vendorCode: "Throttling",
    message: "Too many requests (simulated)",
    retryAfterMillis: 1000
  },
  unavailable: {
    class: "RETRYABLE",
    httpStatus: 503,
    vendorCode: "ServiceUnavailable",
    message: "The vendor is not available (simulated)"
  },
  content: {
    class: "CONTENT",
    httpStatus: 400,
    vendorCode: "DataInspectionFailed",
    message: "The prompt is refused (simulated)"
  },
  media: {
    class: "MEDIA",
    httpStatus: 400,
    vendorCode: "InvalidURL",
    message: "An input medium cannot be downloaded (simulated)"
  },
  operator: {
    class: "OPERATOR",
    httpStatus: 403,
    vendorCode: "Arrearage",
    message: "The account is not paid (simulated)"
  },
  broken: { class: "AMBIGUOUS", message: "The connection broke before the response (simulated)" },
  fail: {
    class: "FAILED",
    httpStatus: 500,
    vendorCode: "InternalError",
    message: "The job failed upstream (simulated)"
  },
  empty: { class: "FAILED", message: "No result was generated (simulated)" },
  timeout: {
    class: "TIMEOUT",
    httpStatus: 504,
    vendorCode: "InternalError.Timeout",
    message: "The job took too long upstream (simulated)"
  },
  lost: {
    class: "LOST",
    httpStatus: 404,
    vendorCode: "UNKNOWN",
    message: "The vendor does not know the job (simulated)"
  }
} as const

const failure = (taskId: string, kind: keyof typeof failures, message?: string): VendorError =>
  new VendorError({
    ...failures[kind],
    requestId: `sim-${taskId}`,
    message: message ?? failures[kind].message
  })

/** The refusal of a submit, before anything is bought. */
const refusalOf = (script: Script, attempts: number) => {
  const throttled = script.throttledSubmits ?? 0
  if (attempts <= throttled) return "throttled"
  if (attempts <= throttled + (script.failedSubmits ?? 0)) return "unavailable"
  return script.refusal
}

const decodeFields = Schema.decodeUnknownEffect(RenderedFields)
const decodeJob = Schema.decodeUnknownEffect(Job)

const jobOf = (handle: Handle) =>
  decodeJob(handle).pipe(
    Effect.mapError(
      () => new VendorError({ class: "LOST", message: "This simulator did not create the handle" })
    )
  )

const anyJobOf = Effect.fnUntraced(function* (handle: Handle) {
  const known = Option.orElse(responseJobIn(handle), () => batchJobIn(handle))
  return Option.isSome(known) ? known.value : yield* jobOf(handle)
})

/** A delay between `min` and `max`, determined by the task id, or the fixed one of `[[sim:slow=…]]`. */
const delayOf = (
  taskId: string,
  script: Script,
  range: { readonly min: Duration.Input; readonly max: Duration.Input }
): number => {
  const min = Duration.toMillis(range.min)
  const share = hash(`delay:${taskId}`) / 0xffff_ffff
  return script.delayMillis ?? Math.round(min + share * (Duration.toMillis(range.max) - min))
}

const remainingMillis = (job: Pick<Job, "delayMillis" | "submittedAtMillis">) =>
  Effect.map(Clock.currentTimeMillis, (now) => job.submittedAtMillis + job.delayMillis - now)

const pollAfter = (remaining: number): Duration.Duration =>
  Duration.millis(remaining > 0 ? Math.min(pollMillis, remaining) : pollMillis)

/** Reads the media one by one, as an upstream would. An unreadable one fails the submit. */
const readMedia = ({ media, taskId }: SubmitRequest) =>
  Effect.forEach(
    media,
    ({ bytes, pointer, size }) =>
      Effect.flatMap(bytes, ({ length }) =>
        length === size
          ? Effect.void
          : Effect.fail(failure(taskId, "media", `${pointer} does not have the announced size`))
      ),
    { discard: true }
  )

const readResponse = (request: SubmitRequest) =>
  Effect.flatMap(readResponseRequest(request), (found) =>
    Option.isSome(found) ? Effect.succeed(found.value) : failure(request.taskId, "unreadable")
  )

const render = Effect.fnUntraced(function* (job: Job, font: Unifont.Font) {
  const items: Array<ResultItem> = []
  for (let index = 0; index < job.items; index += 1) {
    const [bytes, mime] = yield* renderOne(job, index, font)
    items.push({ _tag: "Bytes", bytes, mime })
  }
  return items
})

const renderOne = Effect.fnUntraced(function* (
  { model, plan }: Job,
  index: number,
  font: Unifont.Font
) {
  const scene = { ...plan, model, index }
  switch (plan.kind) {
    case "images":
      return [yield* renderPng(scene, font), "image/png"] as const
    case "videos":
      return [yield* renderMp4(scene, plan, font), "video/mp4"] as const
    case "audios":
      return [renderTone(plan), "audio/wav"] as const
    case "meshes":
      return [renderGlb({ ...plan, seed: plan.seed + index }), "model/gltf-binary"] as const
    case "documents": {
      const json = { simulated: true, model, prompt: plan.prompt, seed: plan.seed, index }
      return [Buffer.from(JSON.stringify(json)), "application/json"] as const
    }
  }
})

const poll = Effect.fnUntraced(function* (
  handle: Handle,
  loadFont: Effect.Effect<Unifont.Font>
): Effect.fn.Return<Progress, VendorError> {
  const job = yield* anyJobOf(handle)
  const remaining = yield* remainingMillis(job)
  if (remaining > 0 || job.ending === "hang") {
    const running = {
      _tag: "Running",
      pollAfter: pollAfter(remaining),
      ...("isDescribed" in job
        ? { rendered: 100 * (1 - Math.min(1, remaining / Math.max(1, job.delayMillis))) }
        : {})
    } as const
    return "isBatch" in job
      ? { ...running, batch: { status: "in_progress", completed: 0, failed: 0 } }
      : running
  }
  if (job.ending !== "done") return yield* failure(job.taskId, job.ending)
  if ("isBatch" in job) {
    const batch = { status: "completed", completed: 0, failed: 0 } as const
    return { _tag: "Done", result: { items: [], batch } }
  }
  if ("completion" in job) return { _tag: "Done", result: resultOf(job) }
  if (job.items === 0) return yield* failure(job.taskId, "empty")
  return {
    _tag: "Done",
    result: { items: yield* render(job, yield* loadFont), ...figuresOf(job) }
  }
})

/** With figures, even without any, the whole body is read when the task ends. */
const figuresOf = ({ isDescribed, items, plan: { kind, seconds } }: Job) => {
  if (isDescribed !== true) return {}
  const length = kind === "videos" || kind === "audios" ? { duration: seconds, seconds } : {}
  return { usage: {}, rendered: { results: items, ...length } }
}

const cancel = Effect.fn("Simulator.cancel")(function* (
  handle: Handle
): Effect.fn.Return<CancelOutcome, VendorError> {
  const job = yield* anyJobOf(handle)
  const remaining = yield* remainingMillis(job)
  return remaining > 0 || job.ending === "hang" ? "Canceled" : "TooLate"
})

/**
 * The vendor of the sandbox. Renders PNG images and MP4 videos after a delay, by the fiber's clock. The handle contains
 * everything that a poll needs. Directives in the prompt (`Script.directives`) change its behavior. The counts for
 * `[[sim:429=…]]`, `[[sim:503=…]]` and `paidSubmits` start at zero with the process. It cannot list jobs.
 * docs/reference/vendors.md#sandbox
 */
export const make = Effect.fnUntraced(function* (
  options: SimulatorOptions = {}
): Effect.fn.Return<Simulator> {
  const log = new SubmitLog()
  const loadFont = yield* Effect.cached(Unifont.load)
  const crash = options.crash ?? Effect.void

  /**
   * The handle contains everything that polls need. The results are computed from the requests when the batch has
   * ended.
   */
  const submitBatch = Effect.fnUntraced(function* ({ taskId }: SubmitRequest) {
    log.addAttempt(taskId)
    log.addPaid(taskId)
    const delayMillis = delayOf(taskId, {}, options.delay ?? defaultDelay)
    const handle = {
      isBatch: true,
      taskId,
      submittedAtMillis: yield* Clock.currentTimeMillis,
      delayMillis,
      ending: "done"
    } satisfies BatchJob
    return { _tag: "Accepted", handle, pollAfter: pollAfter(delayMillis) } as const
  })

  const submit = Effect.fn("Simulator.submit")(function* (
    request: SubmitRequest
  ): Effect.fn.Return<Submitted, VendorError> {
    const { model, taskId } = request
    if (request.result === "batches") return yield* submitBatch(request)
    const ordered = request.result === "responses" ? yield* readResponse(request) : undefined
    const fields =
      ordered === undefined
        ? yield* decodeFields(renderedBody(request)).pipe(
            Effect.mapError(() => failure(taskId, "unreadable"))
          )
        : { prompt: ordered.prompt }
    const { faults, script, text } = parse(fields.prompt ?? "")
    if (faults.length > 0) return yield* failure(taskId, "unreadable", faults.join("; "))
    if (ordered === undefined) yield* readMedia(request)
    if (script.crash === "before-submit") yield* crash
    const refusal = refusalOf(script, log.addAttempt(taskId).attempts)
    if (refusal !== undefined) return yield* failure(taskId, refusal)
    log.addPaid(taskId)
    if (script.crash === "after-submit") yield* crash
    if (script.isSubmitLost === true) return yield* failure(taskId, "broken")
    const delayMillis = delayOf(taskId, script, options.delay ?? defaultDelay)
    const timed = {
      taskId,
      submittedAtMillis: yield* Clock.currentTimeMillis,
      delayMillis,
      ending: script.ending ?? "done"
    }
    if (ordered !== undefined) {
      const handle = { ...timed, ...ordered.job } satisfies ResponseJob
      return { _tag: "Accepted", handle, pollAfter: pollAfter(delayMillis) }
    }
    const plan = planOf(request, fields, text)
    const handle: Job = {
      ...timed,
      model,
      items: Math.min(plan.count, script.itemsMax ?? plan.count),
      plan,
      ...(request.described === undefined ? {} : { isDescribed: true })
    }
    return { _tag: "Accepted", handle, pollAfter: pollAfter(delayMillis) }
  })

  return {
    account: {
      accountId,
      isSimulated: true,
      submit,
      poll: Effect.fn("Simulator.poll")((handle: Handle) => poll(handle, loadFont)),
      cancel,
      answerLine: simulatedLine,
      events: (handle, after) =>
        Option.match(responseJobIn(handle), {
          onNone: () => Effect.succeed(Stream.empty),
          onSome: (job) =>
            Effect.map(remainingMillis(job), (millis) => eventsOf(job, millis, after))
        })
    },
    paidSubmits: (taskId) => Effect.sync(() => log.of(taskId).paid)
  }
})

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const whole = (value: unknown): number | undefined =>
  typeof value === "number" ? Math.round(value) : undefined

/** `5`, `"5"` or `"5s"`. */
const length = (value: unknown): number | undefined => {
  const digits = /^(\d{1,4})s?$/u.exec(text(value) ?? "")?.[1]
  return digits === undefined ? whole(value) : Number(digits)
}

const pixels = /^\d{2,4}[:x*]\d{2,4}$/u

/** The parts of a body that the simulator renders. A described body may have fields of any names and types. */
const renderedBody = ({ body, described }: SubmitRequest): unknown => {
  if (described === undefined) return body
  const fields: Record<string, unknown> = { ...Object(body) }
  const sizes = [fields["size"], fields["ratio"], fields["resolution"]].map(text)
  const size = sizes.find((it) => it !== undefined && pixels.test(it))?.replace(/[:x]/u, "*")
  const all = {
    prompt: text(fields["prompt"]) ?? text(fields["text"]),
    size,
    n: countOf(described.count, body) ?? 1,
    duration: length(fields["duration"]) ?? length(fields["seconds"]),
    seed: whole(fields["seed"])
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/** Counts of one task since the process started. */
interface SubmitCount {
  /** All submits, including refused ones. */
  readonly attempts: number
  /** Submits that bought a job. */
  readonly paid: number
}

/** The most tasks. Beyond this number the oldest is removed. */
const tasksMax = 100_000

class SubmitLog {
  readonly #counts = new Map<string, SubmitCount>()

  of(taskId: string): SubmitCount {
    return this.#counts.get(taskId) ?? { attempts: 0, paid: 0 }
  }

  addAttempt(taskId: string): SubmitCount {
    const { attempts, paid } = this.of(taskId)
    return this.#store(taskId, { attempts: attempts + 1, paid })
  }

  addPaid(taskId: string): SubmitCount {
    const { attempts, paid } = this.of(taskId)
    return this.#store(taskId, { attempts, paid: paid + 1 })
  }

  #store(taskId: string, count: SubmitCount): SubmitCount {
    this.#counts.set(taskId, count)
    for (const oldest of this.#counts.keys()) {
      if (this.#counts.size <= tasksMax) break
      this.#counts.delete(oldest)
    }
    return count
  }
}
