import { Context, DateTime, Duration, Effect, Layer, Option, Schema, Semaphore } from "effect"
import { createHash } from "node:crypto"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { submitMediaBytesMax } from "../../domain/Limits.ts"
import { isTerminal } from "../../domain/Task.ts"
import { Drain } from "../../process/Drain.ts"
import type {
  Handle,
  ResultItem,
  SubmitMedium,
  SubmitRequest,
  Submitted,
  VendorAccount,
  VendorResult
} from "../../vendors/VendorClient.ts"
import type { VendorError } from "../../vendors/VendorError.ts"
import { Callbacks } from "../callbacks/Callbacks.ts"
import { TaskChanges } from "../TaskChanges.ts"
import { TaskOutput } from "../TaskOutput.ts"
import { TaskStore } from "../TaskStore.ts"
import type { OwnedTask } from "../TaskStore.ts"
import { ConcurrencyLimiter } from "./ConcurrencyLimiter.ts"
import { RateLimiter } from "./RateLimiter.ts"
import { failureText } from "./VendorFailure.ts"

/** Another process owns the task, or it has ended: nothing may be written or submitted any more. */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", {}) {}

/** A job to submit: for which task, of which model, to which account. */
export interface Submission {
  readonly owned: OwnedTask
  readonly entry: CatalogEntry
  readonly account: VendorAccount
  readonly media: ReadonlyArray<SubmitMedium>
}

/** A job that the vendor accepted, with its handle recorded. */
export interface SubmittedJob {
  readonly handle: Handle
  readonly pollAfter: Duration.Duration
}

/** The outcome of a submit, as it is stored. */
export interface SubmitRecord {
  readonly n: number
  readonly state: "submitted" | "refused" | "ambiguous"
  readonly handle: Handle | null
  readonly failure: string | null
}

/** Submits of one task, counting those that the vendor refused as retryable or rate-limited. */
const submitsMax = 6

/**
 * Pays for a job at most once: the attempt is committed before the submit, the handle right after, and
 * only a refusal that certainly started no job is submitted again.
 * docs/reference/vendors.md#paid-submit-protocol
 */
export class PaidSubmit extends Context.Service<
  PaidSubmit,
  {
    /** Submits as attempt `firstN`, and again while the vendor's refusal is temporary. */
    readonly submit: (
      submission: Submission,
      firstN: number
    ) => Effect.Effect<SubmittedJob, VendorError | Fenced>
    readonly record: (owned: OwnedTask, record: SubmitRecord) => Effect.Effect<void, Fenced>
  }
>()("gateway/tasks/submission/PaidSubmit") {
  static readonly layer = Layer.effect(
    PaidSubmit,
    Effect.gen(function* () {
      const { hold } = yield* Drain
      const output = yield* TaskOutput
      const store = yield* TaskStore
      const slots = yield* ConcurrencyLimiter
      const acquire = acquireWith(yield* RateLimiter, slots)
      const begin = beginWith(store, yield* TaskChanges)
      const cancelIfEnded = cancelIfEndedWith(store)
      const submitRequest = submitRequestWith(yield* Callbacks)
      const handleOf = handleWith(output)
      const withMediaCapacity = mediaCapacityOf(yield* Semaphore.make(submitMediaBytesMax))

      const record = Effect.fnUntraced(function* (owned: OwnedTask, submit: SubmitRecord) {
        const now = yield* DateTime.now
        const { epoch, task } = owned
        const attempt = { taskId: task.id, epoch, ...submit, now }
        const written = yield* retryStore(store.endAttempt(attempt))
        if (!written) return yield* new Fenced()
        if (submit.state !== "submitted") yield* slots.notifyReleased
      })

      const post = (submission: Submission, n: number) => {
        const { account, owned } = submission
        return account.submit(submitRequest(submission)).pipe(
          Effect.flatMap((submitted) =>
            Effect.flatMap(handleOf(owned, submitted), (handle) =>
              record(owned, { n, state: "submitted", handle, failure: null }).pipe(
                Effect.tapErrorTag("Fenced", () => cancelIfEnded(account, handle, owned)),
                Effect.as({
                  handle,
                  pollAfter: submitted._tag === "Accepted" ? submitted.pollAfter : Duration.zero
                })
              )
            )
          ),
          Effect.tapErrorTag("VendorError", (error) =>
            record(owned, {
              n,
              state: error.class === "AMBIGUOUS" ? "ambiguous" : "refused",
              handle: null,
              failure: failureText(error)
            })
          )
        )
      }

      /**
       * Uninterruptible from the statement that begins the attempt to the record of the response,
       * except for the wait while the store is unavailable: no paid job is lost, and no attempt
       * that was not sent becomes ambiguous.
       */
      const submitOnce = (submission: Submission, n: number) =>
        Effect.uninterruptibleMask((restore) =>
          hold("submit")(Effect.andThen(begin(submission, n, restore), post(submission, n)))
        )

      const submit = (
        submission: Submission,
        n: number
      ): Effect.Effect<SubmittedJob, VendorError | Fenced> =>
        acquire(submission).pipe(
          Effect.andThen(withMediaCapacity(submission, submitOnce(submission, n))),
          Effect.catchTag("VendorError", (error) =>
            Effect.flatMap(waitBefore(submission, error, n), (wait) =>
              Effect.delay(submit(submission, n + 1), wait)
            )
          )
        )

      return PaidSubmit.of({ submit, record })
    })
  )
}

/** The task's request, with the callback URL for a vendor that calls when the job has ended. */
const submitRequestWith =
  (callbacks: Callbacks["Service"]) =>
  ({ account, entry, media, owned: { task } }: Submission): SubmitRequest => {
    const callbackUrl = callbacks.callbackUrl({ account, taskId: task.id })
    const request = requestOf(task, entry, media)
    return callbackUrl === undefined ? request : { ...request, callbackUrl }
  }

/** A slot first, which may take long, then a permit. A task that waits for them stays `pending`. */
const acquireWith =
  (permits: RateLimiter["Service"], slots: ConcurrencyLimiter["Service"]) =>
  ({ account, entry, owned }: Submission): Effect.Effect<void> => {
    const limit = account.slotsOf?.(entry.upstreamModel)
    const rate = account.rateOf?.("submit", entry.upstreamModel)
    const request = { taskId: owned.task.id, epoch: owned.epoch }
    return Effect.andThen(
      limit === undefined ? Effect.void : slots.acquire(request, limit),
      rate === undefined ? Effect.void : permits.acquire(rate)
    )
  }

/**
 * An adapter holds the media as bytes and as text until the vendor responds. A submit whose media
 * exceed the free capacity waits before its attempt begins. ADR 0122.
 */
const mediaCapacityOf =
  (capacity: Semaphore.Semaphore) =>
  <A, E>({ media }: Submission, submit: Effect.Effect<A, E>): Effect.Effect<A, E> => {
    const bytes = media.reduce((sum, { size }) => sum + size, 0)
    return bytes === 0 ? submit : capacity.withPermits(Math.min(bytes, submitMediaBytesMax))(submit)
  }

/** `restore` makes the waits between tries interruptible. */
const beginWith = (store: TaskStore["Service"], changes: TaskChanges["Service"]) =>
  Effect.fnUntraced(function* (
    { account, entry, owned }: Submission,
    n: number,
    restore: (wait: Effect.Effect<void>) => Effect.Effect<void>
  ) {
    const attempt = {
      taskId: owned.task.id,
      epoch: owned.epoch,
      n,
      vendor: entry.vendor,
      accountId: account.accountId,
      bodyHash: createHash("sha256").update(JSON.stringify(owned.task.body)).digest(),
      now: yield* DateTime.now
    }
    if (!(yield* retryStore(store.beginAttempt(attempt), restore))) return yield* new Fenced()
    yield* changes.notify(owned.task.id)
  })

/** The handle to record: of the job, or in its place the result of a blocking call. */
const handleWith =
  (output: TaskOutput["Service"]) =>
  ({ deadlineAt, task }: OwnedTask, submitted: Submitted): Effect.Effect<Handle, VendorError> =>
    submitted._tag === "Accepted"
      ? Effect.succeed(submitted.handle)
      : Effect.map(output.persistInline(task, submitted.result, deadlineAt), doneHandle)

/**
 * The result of a blocking call, recorded in place of a handle before anything else is done with it: a
 * process that takes the task over goes on from here and submits nothing again.
 */
const DoneHandle = Schema.Struct({
  done: Schema.Array(
    Schema.Union([
      Schema.TaggedStruct("Url", {
        url: Schema.String,
        mime: Schema.String,
        needsAuth: Schema.Boolean,
        isShortLived: Schema.optionalKey(Schema.Boolean)
      }),
      Schema.TaggedStruct("Kept", { url: Schema.String })
    ])
  )
})

const decodeDone = Schema.decodeUnknownOption(DoneHandle)

/** The result that stands in place of a handle. */
export const doneIn = (handle: Handle): Option.Option<VendorResult> =>
  Option.map(decodeDone(handle), ({ done }) => ({ items: done }))

/** Items without bytes: bytes are stored first. */
const doneHandle = (items: ReadonlyArray<Exclude<ResultItem, { _tag: "Bytes" }>>): Handle => ({
  done: items.map((item) => ({ ...item }))
})

/**
 * The task was cancelled during its submit: only this process knows the
 * handle and can cancel the job.
 */
const cancelIfEndedWith =
  (store: TaskStore["Service"]) =>
  (account: VendorAccount, handle: Handle, { task }: OwnedTask): Effect.Effect<void> =>
    Effect.flatMap(retryStore(store.view(task.id)), (now) =>
      Option.exists(now, ({ status }) => isTerminal(status)) && Option.isNone(doneIn(handle))
        ? cancelJob(account, handle)
        : Effect.void
    )

/** To cancel upstream is best effort: no caller waits for it longer than this. */
const cancelTimeout = Duration.seconds(10)

/** Asks a vendor to cancel the job of a task that has ended. Best effort: it may be too late. */
export const cancelJob = (account: VendorAccount, handle: Handle) =>
  Effect.interruptible(account.cancel(handle)).pipe(
    Effect.timeout(cancelTimeout),
    Effect.catchCause((cause) => Effect.logInfo("A vendor did not cancel a job", cause)),
    Effect.asVoid
  )

/** A task as an adapter receives it. */
export const requestOf = (
  task: TaskRow,
  entry: CatalogEntry,
  media: ReadonlyArray<SubmitMedium>
): SubmitRequest => ({
  taskId: task.id,
  model: entry.label,
  upstreamModel: entry.upstreamModel,
  body: task.body,
  media,
  result: entry.result,
  ...(entry.input === undefined ? {} : { input: entry.input }),
  ...(entry.output === undefined ? {} : { output: entry.output })
})

/** No job was started, or a poll failed: to try again is safe. */
export const isTransient = (error: VendorError): boolean =>
  error.class === "RETRYABLE" || error.class === "RATE_LIMITED"

/**
 * Whether the task is submitted again after this failure of its submit `n`, in this process or, after
 * its end, in another. A medium that the vendor could not fetch is submitted once more.
 */
export const isSubmittedAgain = (error: VendorError, n: number): boolean =>
  n < submitsMax && (isTransient(error) || (error.class === "MEDIA" && n === 1))

/** The wait before the next submit; fails with the error itself when there is none. */
const waitBefore = ({ owned }: Submission, error: VendorError, n: number) =>
  Effect.flatMap(DateTime.now, (now) => {
    const wait = waitOf(error, n)
    // A wait of hours (a daily quota) would only end at the task's deadline
    const isInTime = DateTime.isLessThan(DateTime.addDuration(now, wait), owned.deadlineAt)
    return isSubmittedAgain(error, n) && isInTime ? Effect.succeed(wait) : Effect.fail(error)
  })

/** Waits between refused submits: 1, 2, 4 … seconds, or what the vendor asked for. */
const waitOf = (error: VendorError, n: number): Duration.Duration =>
  Duration.millis(error.retryAfterMillis ?? Math.min(60_000, 1000 * 2 ** (n - 1)))
