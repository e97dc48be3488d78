import { Clock, Context, DateTime, Duration, Effect, Layer, Option, Result } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { modelAt } from "../../domain/task/Candidate.ts"
import { AccountKeys } from "../../process/accounts/AccountKeys.ts"
import { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"
import { countOperatorFault } from "../../vendors/accounts/OperatorFaultsTotal.ts"
import { pollIntervalMax } from "../../vendors/Polling.ts"
import type { Progress, VendorAccount, VendorResult } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { NewestAttempt, Owned, OwnedJob, OwnedTask } from "../running/OwnedTask.ts"
import { TaskInbox } from "../running/TaskInbox.ts"
import { listQueue, pollQueue, ratedQueue } from "../running/TaskQueue.ts"
import { TaskStore } from "../TaskStore.ts"
import type { StepEnd } from "../TaskStore.ts"
import { VendorBatchStore } from "../vendorbatches/VendorBatchStore.ts"
import { doneIn } from "./DoneHandle.ts"
import { isOfSkipped } from "./Fallback.ts"
import { OperatorFaults } from "./OperatorFaults.ts"
import { cancelJob, isSubmittedAgain, isTransient, PaidSubmit } from "./PaidSubmit.ts"
import type { Fenced } from "./PaidSubmit.ts"
import { PollPacing } from "./PollPacing.ts"
import { ambiguous, Reconcile } from "./Reconcile.ts"
import { makeUnlessInDoubt } from "./RestoredTask.ts"
import { makeSubmit, waits, waitWith } from "./SubmitStep.ts"
import type { ReportFaults, VendorStep } from "./SubmitStep.ts"
import { entryWith } from "./TaskEntry.ts"
import { storedFailure } from "./VendorFailure.ts"

/** Runs the next step of a task at its vendor: submits the job, or polls the submitted job. */
export class VendorWork extends Context.Service<
  VendorWork,
  {
    /** Asks the vendor to cancel the job that was last submitted for a task. Best effort: never fails. */
    readonly cancel: (id: TaskId) => Effect.Effect<void>
    /**
     * Runs the next step. If the task has to wait, it has been released, and the process that claims it when it is due
     * continues.
     */
    readonly next: (owned: Owned) => Effect.Effect<VendorStep, VendorError | Fenced>
  }
>()("gateway/tasks/submission/VendorWork") {
  static readonly layer = Layer.effect(
    VendorWork,
    Effect.gen(function* () {
      const entryOf = entryWith(yield* CatalogVersions)
      const waitIn = waitWith(yield* TaskStore)
      const { poll, reportFaults, waitForAccount, waitForCatalog } = yield* makePolling
      const submit = yield* makeSubmit(reportFaults)
      const reconcile = yield* Reconcile
      const paid = yield* PaidSubmit
      const accounts = yield* AccountKeys
      const unlessInDoubt = yield* makeUnlessInDoubt
      const cancel = cancelWith(yield* TaskStore, accounts)

      /** Continues a task whose job may have been bought: searches for the job if the vendor can list jobs. */
      const unsettled = Effect.fnUntraced(function* (
        owned: OwnedTask,
        { n }: NewestAttempt,
        account: VendorAccount
      ) {
        if (account.list === undefined) return yield* ambiguous
        const queue = listQueue(account)
        if (owned.queue === queue.name) return waits(yield* reconcile.search(owned, account))
        // The owning process died between the submit and its record
        const dueAt = yield* DateTime.now
        const attempt = { n, state: "submitting", handle: null, failure: null } as const
        yield* paid.record(owned, attempt, { dueAt, queue })
        return waits(dueAt)
      })

      /** Continues after an earlier submit, which may have bought a job. */
      const resumeSubmit = Effect.fnUntraced(function* (owned: OwnedTask, attempt: NewestAttempt) {
        const owner = yield* Effect.result(accounts.ownerOf(attempt.accountId))
        return Result.isFailure(owner)
          ? yield* waitForAccount(owned, attempt, owner.failure)
          : yield* unsettled(owned, attempt, owner.success)
      })

      const pollAt = (account: VendorAccount, owned: OwnedJob) => {
        const done = doneIn(owned.job.handle)
        if (Option.isSome(done)) return Effect.succeed(doneWith(account, done.value))
        return Effect.matchEffect(entryOf(owned.task), {
          onFailure: (error) => waitForCatalog(owned, error),
          onSuccess: ({ upstreamModel }) => {
            const rate = ratedQueue(account, "poll", upstreamModel)
            // The rate limit was added after the claim, so the claim did not include a permit
            return rate !== undefined && rate.name !== owned.queue
              ? waitIn(owned, rate)
              : poll(account, upstreamModel, owned)
          }
        })
      }

      // Runs for every poll. Not a generator, whose state would live as long as the request. ADR 0149
      const pollJob = (owned: OwnedJob) =>
        Effect.matchEffect(accounts.ownerOf(owned.job.accountId), {
          onFailure: (error) => waitForAccount(owned, owned.job, error),
          onSuccess: (account) => pollAt(account, owned)
        })

      const submitOrResume = Effect.fnUntraced(function* (owned: OwnedTask) {
        if (Option.isNone(owned.attempt)) {
          return yield* submit(owned, yield* entryOf(owned.task), 1)
        }
        const attempt = owned.attempt.value
        if (attempt.state === "refused") {
          if (isOfSkipped(owned.task, attempt.n)) {
            return yield* submit(owned, yield* entryOf(owned.task), attempt.n + 1)
          }
          const refusal = storedFailure(attempt.failure)
          if (!isSubmittedAgain(refusal, attempt.n)) return yield* refusal
          return yield* submit(owned, yield* entryOf(owned.task), attempt.n + 1)
        }
        return yield* attempt.state === "ambiguous" ? ambiguous : resumeSubmit(owned, attempt)
      })

      return VendorWork.of({
        cancel: (id) =>
          Effect.catchCause(cancel(id), (cause) =>
            Effect.logInfo("A vendor was not asked to cancel a job", cause)
          ),
        next: (owned) =>
          owned.job === undefined ? unlessInDoubt(owned, submitOrResume) : pollJob(owned)
      })
    })
  )
}

const cancelWith = (tasks: TaskStore["Service"], accounts: AccountKeys["Service"]) =>
  Effect.fn("VendorWork.cancel")(function* (id: TaskId) {
    const job = yield* retryStore(tasks.job(id))
    if (Option.isNone(job) || Option.isSome(doneIn(job.value.handle))) return
    const account = yield* accounts.ownerOf(job.value.accountId)
    yield* cancelJob(account, job.value.handle)
  })

/** Polls, and reports faults of the service's own account. */
const makePolling = Effect.gen(function* () {
  const faults = yield* OperatorFaults
  const inbox = yield* TaskInbox
  const pacing = yield* PollPacing
  const batches = yield* VendorBatchStore
  const store = yield* TaskStore
  const endPoll = (end: StepEnd, until: DateTime.Utc) =>
    store.endPoll(end, () => inbox.wake(DateTime.toEpochMillis(until)))

  const report = (account: VendorAccount, upstreamModel: string, error: VendorError) =>
    account.isSimulated === true
      ? Effect.void
      : faults.report(account.accountId, upstreamModel, error)

  /** Reports a fault of the service's own account to the operator and refuses later creates. */
  const reportFaults: ReportFaults = (account, upstreamModel, work) =>
    Effect.tapError(work, (error) =>
      error instanceof VendorError && (error.class === "OPERATOR" || error.class === "GONE")
        ? report(account, upstreamModel, error)
        : Effect.void
    )

  /**
   * Retries a poll that failed temporarily or that the vendor refused because of the account: the job is paid for, and
   * the operator can repair the account. ADR 0255.
   */
  const poll = (account: VendorAccount, upstreamModel: string, { epoch, job, task }: OwnedJob) => {
    const { userId } = task
    const progress = Effect.catch(account.poll(job.handle), (error) => {
      if (isTransient(error)) {
        const pollAfter = Duration.millis(error.retryAfterMillis ?? failedPollMillis)
        return Effect.succeed<Progress>({ _tag: "Running", pollAfter })
      }
      return isAccountRefused(error)
        ? Effect.as(report(account, upstreamModel, error), refusedProgress)
        : reportFaults(account, upstreamModel, Effect.fail(error))
    })
    return Effect.flatMap(progress, (progress) => {
      if (progress._tag === "Done") {
        pacing.ended({ account, upstreamModel, userId })
        return Effect.succeed(doneWith(account, progress.result))
      }
      const paced = { account, upstreamModel, userId, after: progress.pollAfter }
      const next = Effect.flatMap(pacing.next(paced), (until) =>
        Effect.flatMap(DateTime.now, (now) => {
          const next = { dueAt: until, queue: pollQueue(account, upstreamModel) }
          const end = { taskId: task.id, epoch, next, progress: progress.percent, now }
          return Effect.as(endPoll(end, until), waits(until))
        })
      )
      return progress.batch === undefined
        ? next
        : Effect.andThen(retryStore(batches.note({ id: task.id, epoch }, progress.batch)), next)
    })
  }

  const logCatalogFault = makeCatalogFaultLogger()

  const waitAMinute = Effect.fnUntraced(function* ({ epoch, queue, task }: Owned) {
    const now = yield* DateTime.now
    const until = DateTime.addDuration(now, pollIntervalMax)
    const next = { dueAt: until, queue: { name: queue } }
    yield* endPoll({ taskId: task.id, epoch, next, now }, until)
    return waits(until)
  })

  return {
    reportFaults,
    /** The job is paid for, and the operator can restore its account. ADR 0186. */
    waitForAccount: (
      owned: Owned,
      { accountId }: Pick<NewestAttempt, "accountId">,
      error: VendorError
    ) =>
      Effect.andThen(
        faults.report(accountId, modelAt(owned.task).model, error),
        waitAMinute(owned)
      ),
    /** The job is paid for, and another process or a newer release may be able to read the catalog. ADR 0255 */
    waitForCatalog: (owned: OwnedJob, error: VendorError) =>
      Effect.andThen(logCatalogFault(owned, error), waitAMinute(owned)),
    poll
  }
})

/** Logs at most once a minute, because many jobs may be waiting. */
const makeCatalogFaultLogger = () => {
  let loggedAtMillis = -Infinity
  return Effect.fnUntraced(function* ({ job, task }: OwnedJob, error: VendorError) {
    yield* countOperatorFault(job.accountId, "catalog")
    const millis = yield* Clock.currentTimeMillis
    if (Math.abs(millis - loggedAtMillis) < Duration.toMillis(pollIntervalMax)) return
    loggedAtMillis = millis
    yield* Effect.logError(
      `Jobs at ${job.accountId} wait, such as that of task ${task.id}: ${error.message}. Remedy: run the ` +
        "release that accepted them, or restore the row of the table catalogs"
    )
  })
}

const doneWith = (account: VendorAccount, result: VendorResult): VendorStep => ({
  _tag: "Done",
  job: { account, result }
})

/** The wait in milliseconds after a failed poll, unless the vendor specifies one. */
const failedPollMillis = 5000

/**
 * Whether the vendor refused the poll itself. If a job failed because of the account, the poll's response is
 * successful.
 */
const isAccountRefused = (error: VendorError): boolean =>
  error.class === "OPERATOR" && error.httpStatus !== undefined

/** The longest interval, because a repair takes minutes and each refusal is logged and written to the store. */
const refusedProgress: Progress = { _tag: "Running", pollAfter: pollIntervalMax }
