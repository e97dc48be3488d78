import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import { createHash } from "node:crypto"
import type { TaskModel } from "../../catalog/CatalogEntry.ts"
import { AppConfig } from "../../config/Config.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { ShareExhausted } from "../../domain/shares/FairShares.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { Drain } from "../../process/Drain.ts"
import { StoreProgress } from "../../process/heartbeat/StoreProgress.ts"
import type {
  Handle,
  SubmitMedium,
  SubmitRequest,
  VendorAccount,
  VendorResult
} from "../../vendors/VendorClient.ts"
import type { VendorError } from "../../vendors/VendorError.ts"
import { Callbacks } from "../callbacks/Callbacks.ts"
import { TaskOutput } from "../completion/TaskOutput.ts"
import type { OwnedTask, StoredInputs } from "../running/OwnedTask.ts"
import { listQueue, pollQueue, submitQueue } from "../running/TaskQueue.ts"
import { TaskChanges } from "../TaskChanges.ts"
import { TaskStore } from "../TaskStore.ts"
import type { AttemptOutcome, NextStep, Pass } from "../TaskStore.ts"
import { ConcurrencyLimiter } from "./ConcurrencyLimiter.ts"
import { doneHandle, doneIn } from "./DoneHandle.ts"
import { passAfter } from "./Fallback.ts"
import { PollPacing } from "./PollPacing.ts"
import { makeSubmitMemory } from "./SubmitMemory.ts"
import { requestOf } from "./TaskEntry.ts"
import { failureText } from "./VendorFailure.ts"

/** Another process owns the task, or it has ended: this process may not write or submit anything more. */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", {}) {}

/** A job to submit, with its task, model, account and attempt number. */
export interface Submission {
  readonly owned: OwnedTask
  readonly entry: TaskModel
  readonly account: VendorAccount
  readonly media: ReadonlyArray<SubmitMedium>
  /** Artifacts of the fetched media, kept for a later submit. */
  readonly inputs: StoredInputs
  /** The input file of a batch, and what was prepared from it. */
  readonly more?: Pick<SubmitRequest, "file" | "prepared">
  readonly n: number
}

/**
 * The outcome of a submit. The task waits for its job (`Accepted`), for another submit or for the search for its job
 * (both `Refused`), or for the submit to its next model (`Passed`); or a blocking call has returned the result
 * (`Done`).
 */
export type SubmitOutcome =
  | { readonly _tag: "Accepted"; readonly until: DateTime.Utc }
  | { readonly _tag: "Refused"; readonly until: DateTime.Utc }
  | { readonly _tag: "Passed"; readonly until: DateTime.Utc; readonly error: VendorError }
  | { readonly _tag: "Done"; readonly result: VendorResult }

/** The maximum number of submits of a task, including those that the vendor refused as retryable or rate-limited. */
const submitsMax = 6

/**
 * Buys a job at most once. The attempt is committed before the submit and the handle right after it, and a submit is
 * repeated only after a refusal that certainly started no job. docs/reference/vendors.md#paid-submit-protocol
 */
export class PaidSubmit extends Context.Service<
  PaidSubmit,
  {
    /**
     * Fails as `ShareExhausted`, before beginning an attempt, if too many of the user's submits wait for memory for
     * their media.
     */
    readonly submit: (
      submission: Submission
    ) => Effect.Effect<SubmitOutcome, VendorError | Fenced | ShareExhausted>
    readonly record: (
      owned: OwnedTask,
      attempt: AttemptOutcome,
      next?: NextStep
    ) => Effect.Effect<void, Fenced>
  }
>()("gateway/tasks/submission/PaidSubmit") {
  static readonly layer = Layer.effect(
    PaidSubmit,
    Effect.gen(function* () {
      const { hold } = yield* Drain
      const begin = beginWith(yield* TaskStore, yield* TaskChanges, yield* StoreProgress)
      const submitRequest = submitRequestWith(yield* Callbacks)
      const memory = makeSubmitMemory((yield* AppConfig).processes)
      const { accepted, done, record, refused } = yield* makeRecording

      const post = (submission: Submission): Effect.Effect<SubmitOutcome, VendorError | Fenced> =>
        submission.account.submit(submitRequest(submission)).pipe(
          Effect.flatMap((submitted): Effect.Effect<SubmitOutcome, VendorError | Fenced> =>
            submitted._tag === "Accepted"
              ? accepted(submission, submitted.handle, submitted.pollAfter)
              : done(submission, submitted.result)
          ),
          Effect.catchTag("VendorError", (error) => refused(submission, error))
        )

      return PaidSubmit.of({
        record,
        /**
         * Uninterruptible from the statement that begins the attempt until the response is recorded, so that no paid
         * job is lost. Only the wait for an unavailable store can be interrupted, so that an attempt that was never
         * sent does not become ambiguous.
         */
        submit: (submission) =>
          memory.within(submission)(
            Effect.uninterruptibleMask((restore) =>
              // A drain waits for the vendor's response
              hold("submit")(
                Effect.andThen(
                  begin(submission, restore),
                  Effect.suspend(() => post(submission))
                )
              )
            )
          )
      })
    })
  )
}

/** Records the outcome of a submit and, if the task has to wait, releases it in the same statement. */
const makeRecording = Effect.gen(function* () {
  const output = yield* TaskOutput
  const store = yield* TaskStore
  const pacing = yield* PollPacing
  const slots = yield* ConcurrencyLimiter
  const cancelIfEnded = cancelIfEndedWith(store)

  const record = Effect.fnUntraced(function* (
    { epoch, task }: OwnedTask,
    attempt: AttemptOutcome,
    next?: NextStep,
    pass?: Pass
  ) {
    const now = yield* DateTime.now
    const then = { ...(next && { next }), ...(pass && { pass }) }
    const end = { taskId: task.id, epoch, attempt, now, ...then }
    if (!(yield* retryStore(store.endStep(end)))) return yield* new Fenced()
    const isOver = attempt.state === "refused" || attempt.state === "ambiguous"
    if (isOver) yield* slots.notifyReleased
  })

  return {
    record,

    accepted: Effect.fnUntraced(function* (
      { account, entry, n, owned }: Submission,
      handle: Handle,
      pollAfter: Duration.Duration
    ) {
      const { userId } = owned.task
      const job = { account, upstreamModel: entry.upstreamModel, userId, after: pollAfter }
      const until = yield* pacing.first(job)
      const next = { dueAt: until, queue: pollQueue(account, entry.upstreamModel) }
      yield* Effect.tapErrorTag(
        record(owned, { n, state: "submitted", handle, failure: null }, next),
        "Fenced",
        () => cancelIfEnded(account, handle, owned)
      )
      return { _tag: "Accepted", until } as const
    }),

    /** Records the result instead of a handle; the owner then continues with it. */
    done: Effect.fnUntraced(function* ({ n, owned }: Submission, result: VendorResult) {
      const items = yield* output.persistInline(owned.task, result, owned.deadlineAt)
      yield* record(owned, { n, state: "submitted", handle: doneHandle(items), failure: null })
      return { _tag: "Done", result: { items } } as const
    }),

    refused: Effect.fnUntraced(function* (submission: Submission, error: VendorError) {
      const { account, n, owned } = submission
      const passed = yield* passAfter(owned.task, error, n)
      if (Option.isSome(passed)) {
        const { next, pass } = passed.value
        const failure = failureText(error)
        yield* record(owned, { n, state: "refused", handle: null, failure }, next, pass)
        return { _tag: "Passed", until: next.dueAt, error } as const
      }
      const isAmbiguous = error.class === "AMBIGUOUS"
      const isSearchedFor = isAmbiguous && account.list !== undefined
      const state = isSearchedFor ? "submitting" : isAmbiguous ? "ambiguous" : "refused"
      const next = isSearchedFor
        ? Option.some({ dueAt: yield* DateTime.now, queue: listQueue(account) })
        : yield* nextSubmit(submission, error)
      const attempt = { n, state, handle: null, failure: failureText(error) } as const
      yield* record(owned, attempt, Option.getOrUndefined(next))
      return Option.isSome(next)
        ? ({ _tag: "Refused", until: next.value.dueAt } as const)
        : yield* error
    })
  }
})

/** The request of a submit, with a callback URL if the vendor sends callbacks when jobs end. */
const submitRequestWith =
  (callbacks: Callbacks["Service"]) =>
  ({ account, entry, media, more, owned: { task } }: Submission): SubmitRequest => {
    const callbackUrl = callbacks.callbackUrl({ account, taskId: task.id })
    const request = requestOf(task, entry, media, more)
    return callbackUrl === undefined ? request : { ...request, callbackUrl }
  }

/** `restore` makes the waits between attempts interruptible. */
const beginWith = (
  store: TaskStore["Service"],
  changes: TaskChanges["Service"],
  progress: StoreProgress
) =>
  Effect.fnUntraced(function* (
    { account, entry, n, owned }: Submission,
    restore: (wait: Effect.Effect<void>) => Effect.Effect<void>
  ) {
    const attempt = {
      taskId: owned.task.id,
      epoch: owned.epoch,
      n,
      vendor: entry.vendor,
      accountId: account.accountId,
      bodyHash: createHash("sha256").update(JSON.stringify(owned.task.body)).digest(),
      queue: submitQueue(entry),
      now: yield* DateTime.now,
      progress,
      showsProgress: account.showsProgress
    }
    if (!(yield* retryStore(store.beginAttempt(attempt), restore))) return yield* new Fenced()
    yield* changes.notify(owned.task.id)
  })

/** The task was cancelled during its submit. Only this process knows the handle, so only it can cancel the job. */
const cancelIfEndedWith =
  (store: TaskStore["Service"]) =>
  (account: VendorAccount, handle: Handle, { task }: OwnedTask): Effect.Effect<void> =>
    Effect.flatMap(retryStore(store.view(task.id)), (now) =>
      Option.exists(now, ({ status }) => isTerminal(status)) && Option.isNone(doneIn(handle))
        ? cancelJob(account, handle)
        : Effect.void
    )

/** Cancelling at the vendor is best effort, and no caller waits longer than this for it. */
const cancelTimeout = Duration.seconds(10)

/** Asks a vendor to cancel the job of a task that has ended. Best effort: the job may have ended, too. */
export const cancelJob = (account: VendorAccount, handle: Handle) =>
  Effect.interruptible(account.cancel(handle)).pipe(
    Effect.timeout(cancelTimeout),
    Effect.catchCause((cause) => Effect.logInfo("A vendor did not cancel a job", cause)),
    Effect.asVoid
  )

/** Whether a retry is safe, because no job was started or only a poll failed. */
export const isTransient = (error: VendorError): boolean =>
  error.class === "RETRYABLE" || error.class === "RATE_LIMITED"

/**
 * Whether the task is submitted again, by this process or a later owner, after its submit `n` failed like this. After a
 * medium that the vendor could not fetch there is one more submit.
 */
export const isSubmittedAgain = (error: VendorError, n: number): boolean =>
  n < submitsMax && (isTransient(error) || (error.class === "MEDIA" && n === 1))

/**
 * The next submit after this failure, if there is one. It may go to any account, and the task holds no slot until then.
 */
const nextSubmit = ({ entry, inputs, n, owned }: Submission, error: VendorError) =>
  Effect.map(DateTime.now, (now): Option.Option<NextStep> => {
    const dueAt = DateTime.add(now, { milliseconds: waitOf(error, n) })
    // After a wait of hours (a daily quota), the task would only reach its deadline
    const isInTime = DateTime.isLessThan(dueAt, owned.deadlineAt)
    return isSubmittedAgain(error, n) && isInTime
      ? Option.some({ dueAt, queue: submitQueue(entry), inputs })
      : Option.none()
  })

/** Milliseconds until the next submit: 1, 2, 4 … seconds, or as long as the vendor asked for. */
const waitOf = (error: VendorError, n: number): number =>
  error.retryAfterMillis ?? Math.min(60_000, 1000 * 2 ** (n - 1))
