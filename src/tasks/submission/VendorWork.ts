import { Context, Duration, Effect, Layer, Option } from "effect"
import type { DateTime } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { CatalogVersions } from "../../process/CatalogVersions.ts"
import type { Signal } from "../../process/KeyedSignal.ts"
import { pollIntervalMax } from "../../vendors/Polling.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import type { Handle, Progress, VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import { CallbackSignals } from "../callbacks/CallbackSignals.ts"
import { TaskMedia } from "../TaskMedia.ts"
import type { JobResult } from "../TaskOutput.ts"
import { TaskStore } from "../TaskStore.ts"
import type { OwnedTask } from "../TaskStore.ts"
import { OperatorFaults } from "./OperatorFaults.ts"
import {
  cancelJob,
  doneIn,
  isSubmittedAgain,
  isTransient,
  PaidSubmit,
  requestOf
} from "./PaidSubmit.ts"
import type { Fenced } from "./PaidSubmit.ts"
import { RateLimiter } from "./RateLimiter.ts"
import { ambiguous, Reconcile } from "./Reconcile.ts"
import { storedFailure } from "./VendorFailure.ts"

/**
 * Gets a task's result from its vendor: submits the job, or continues
 * with the one that was submitted.
 */
export class VendorWork extends Context.Service<
  VendorWork,
  {
    /**
     * Asks the vendor to cancel the job that was last submitted for a
     * task. Best effort: never fails.
     */
    readonly cancel: (id: TaskId) => Effect.Effect<void>
    readonly resultOf: (owned: OwnedTask) => Effect.Effect<JobResult, VendorError | Fenced>
  }
>()("gateway/tasks/submission/VendorWork") {
  static readonly layer = Layer.effect(
    VendorWork,
    Effect.gen(function* () {
      const signals = yield* CallbackSignals
      const entryOf = entryWith(yield* CatalogVersions)
      const faults = yield* OperatorFaults
      const { poll, reportFaults } = yield* makePolling
      const reconcile = yield* Reconcile
      const inputs = yield* TaskMedia
      const paid = yield* PaidSubmit
      const vendors = yield* VendorClient
      const cancel = cancelWith(yield* TaskStore, vendors)

      const submitNew = Effect.fnUntraced(function* (owned: OwnedTask, firstN: number) {
        const entry = yield* entryOf(owned.task)
        const account = yield* vendors.choose(entry)
        const media = yield* inputs.resolve(owned.task, entry)
        const { upstreamModel } = entry
        const submission = { owned, entry, account, media }
        // Before the submit: its callback may come before its response is recorded
        const signal = yield* signals.subscribe(owned.task.id, account)
        const job = yield* reportFaults(account, upstreamModel, paid.submit(submission, firstN))
        yield* faults.clear(account.accountId, upstreamModel)
        yield* signal.wait(job.pollAfter)
        return yield* poll(account, upstreamModel, job.handle, signal)
      }, Effect.scoped)

      /** For a task whose process died between a submit and its record. */
      const reconciled = Effect.fnUntraced(function* (
        owned: OwnedTask,
        attempt: { readonly n: number; readonly startedAt: DateTime.Utc },
        account: VendorAccount
      ) {
        const entry = yield* entryOf(owned.task)
        const request = requestOf(owned.task, entry, [])
        const { n, startedAt } = attempt
        const handle = yield* reconcile.find({ owned, startedAt, account, request })
        yield* paid.record(owned, { n, state: "submitted", handle, failure: null })
        return handle
      })

      /** Continues with a job that another run of the task submitted, or may have submitted. */
      const resume = Effect.fnUntraced(function* (
        owned: OwnedTask,
        attempt: Option.Option.Value<OwnedTask["attempt"]>
      ) {
        const account = yield* vendors.owner(attempt.accountId)
        const { upstreamModel } = yield* entryOf(owned.task)
        const signal = yield* signals.subscribe(owned.task.id, account)
        const known = attempt.handle ?? (yield* reconciled(owned, attempt, account))
        return yield* poll(account, upstreamModel, known, signal)
      }, Effect.scoped)

      return VendorWork.of({
        cancel: (id) => Effect.ignore(cancel(id)),
        resultOf: Effect.fn("VendorWork.resultOf")(function* (owned) {
          if (Option.isNone(owned.attempt)) return yield* submitNew(owned, 1)
          const attempt = owned.attempt.value
          const { n, state } = attempt
          if (state === "refused") {
            const refusal = storedFailure(attempt.failure)
            return yield* isSubmittedAgain(refusal, n) ? submitNew(owned, n + 1) : refusal
          }
          if (state === "ambiguous") return yield* ambiguous
          return yield* resume(owned, attempt)
        })
      })
    })
  )
}

/** As it was when the task was accepted, whatever was reloaded since. */
const entryWith = (versions: CatalogVersions["Service"]) =>
  Effect.fnUntraced(function* ({ action, catalogId, model, vendor }: TaskRow) {
    const catalog = yield* retryStore(versions.withId(catalogId))
    const entry = Option.flatMap(catalog, ({ find }) => find(vendor, model, action))
    return yield* Effect.mapError(
      Effect.fromOption(entry),
      () => new VendorError({ class: "OPERATOR", message: "the model left the catalog" })
    )
  })

const cancelWith = (tasks: TaskStore["Service"], vendors: VendorClient["Service"]) =>
  Effect.fn("VendorWork.cancel")(function* (id: TaskId) {
    const job = yield* tasks.job(id)
    if (Option.isNone(job) || Option.isSome(doneIn(job.value.handle))) return
    const account = yield* vendors.owner(job.value.accountId)
    yield* cancelJob(account, job.value.handle)
  })

/** Polls within the vendor's rate limits, and reports faults of the service's own account. */
const makePolling = Effect.gen(function* () {
  const faults = yield* OperatorFaults
  const limiter = yield* RateLimiter

  const report = (account: VendorAccount, upstreamModel: string, error: VendorError) =>
    account.isSimulated === true
      ? Effect.void
      : faults.report(account.accountId, upstreamModel, error)

  /** A fault of the service's own account is reported to the operator; later creates are refused. */
  const reportFaults = <A, E>(
    account: VendorAccount,
    upstreamModel: string,
    work: Effect.Effect<A, VendorError | E>
  ) =>
    Effect.tapError(work, (error) =>
      error instanceof VendorError && (error.class === "OPERATOR" || error.class === "GONE")
        ? report(account, upstreamModel, error)
        : Effect.void
    )

  /**
   * Polls until the job has ended. A poll that failed temporarily is repeated, and so is
   * one that the vendor refuses to the account: the job was paid for, and the operator
   * can repair the account. ADR 0115.
   */
  const poll = Effect.fnUntraced(function* (
    account: VendorAccount,
    upstreamModel: string,
    handle: Handle,
    signal: Signal
  ) {
    const done = doneIn(handle)
    if (Option.isSome(done)) return { account, result: done.value }
    const rate = account.rateOf?.("poll", upstreamModel)
    const pollOnce = (rate === undefined ? Effect.void : limiter.acquire(rate)).pipe(
      Effect.andThen(account.poll(handle)),
      Effect.catchIf(isTransient, (error) =>
        Effect.succeed({
          _tag: "Running" as const,
          pollAfter: Duration.millis(error.retryAfterMillis ?? failedPollMillis)
        })
      ),
      Effect.catchIf(isAccountRefused, (error) =>
        Effect.as(report(account, upstreamModel, error), refusedProgress)
      )
    )
    for (;;) {
      const progress = yield* pollOnce
      if (progress._tag === "Done") return { account, result: progress.result }
      yield* signal.wait(Duration.min(progress.pollAfter, pollIntervalMax))
    }
  })

  return {
    reportFaults,
    poll: (account: VendorAccount, upstreamModel: string, handle: Handle, signal: Signal) =>
      reportFaults(account, upstreamModel, poll(account, upstreamModel, handle, signal))
  }
})

/** The wait after a poll that failed, when the vendor names none. */
const failedPollMillis = 5000

/** The request was refused. A job that failed because of the account comes in a successful response. */
const isAccountRefused = (error: VendorError): boolean =>
  error.class === "OPERATOR" && error.httpStatus !== undefined

/**
 * The longest interval: a repair takes minutes, and each refusal is
 * logged and written to the store.
 */
const refusedProgress: Progress = { _tag: "Running", pollAfter: pollIntervalMax }
