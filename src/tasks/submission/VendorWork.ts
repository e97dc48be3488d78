import { Context, Duration, Effect, Layer, Option } from "effect"
import type { DateTime } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { pollIntervalMax } from "../../vendors/Polling.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import type { Handle, Progress, VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import { CallbackSignals } from "../callbacks/CallbackSignals.ts"
import type { Bell } from "../callbacks/CallbackSignals.ts"
import { TaskMedia } from "../TaskMedia.ts"
import type { Obtained } from "../TaskOutput.ts"
import { TaskStore } from "../TaskStore.ts"
import type { OwnedTask } from "../TaskStore.ts"
import { doneIn } from "./DoneHandle.ts"
import { OperatorFaults } from "./OperatorFaults.ts"
import { cancelJob, isSubmittedAgain, isTransient, PaidSubmit, requestOf } from "./PaidSubmit.ts"
import type { Fenced } from "./PaidSubmit.ts"
import { RateLimiter } from "./RateLimiter.ts"
import { ambiguous, Reconcile } from "./Reconcile.ts"
import { storedFailure } from "./VendorFailure.ts"

/** Gets a task's result from its vendor: buys the job, or goes on with the one that was bought. */
export class VendorWork extends Context.Service<
  VendorWork,
  {
    /** Asks the vendor to cancel the job that was last bought for a task. Best effort: never fails. */
    readonly cancel: (id: TaskId) => Effect.Effect<void>
    readonly resultOf: (owned: OwnedTask) => Effect.Effect<Obtained, VendorError | Fenced>
  }
>()("gateway/tasks/submission/VendorWork") {
  static readonly layer = Layer.effect(
    VendorWork,
    Effect.gen(function* () {
      const bells = yield* CallbackSignals
      const entryOf = entryWith(yield* Catalog)
      const faults = yield* OperatorFaults
      const { poll, watched } = yield* makeAsking
      const reconcile = yield* Reconcile
      const inputs = yield* TaskMedia
      const paid = yield* PaidSubmit
      const vendors = yield* VendorClient
      const cancel = cancelWith(yield* TaskStore, vendors)

      const fresh = Effect.fnUntraced(function* (owned: OwnedTask, firstN: number) {
        const entry = yield* entryOf(owned.task)
        const account = yield* vendors.choose(entry.vendor, entry.adapter)
        const media = yield* inputs.resolve(owned.task, entry)
        const { upstreamModel } = entry
        const purchase = { owned, entry, account, media }
        // Before the submit: its callback may come before its answer is recorded
        const bell = yield* bells.hang(owned.task.id, account)
        const bought = yield* watched(account, upstreamModel, paid.submit(purchase, firstN))
        yield* faults.clear(account.accountId, upstreamModel)
        yield* bell.wait(bought.pollAfter)
        return yield* poll(account, upstreamModel, bought.handle, bell)
      }, Effect.scoped)

      /** The process died between a submit and its record. */
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

      /** Goes on with a job that was bought, or may have been, by another run of the task. */
      const resumed = Effect.fnUntraced(function* (
        owned: OwnedTask,
        attempt: Option.Option.Value<OwnedTask["attempt"]>
      ) {
        const account = yield* vendors.owner(attempt.accountId)
        const { upstreamModel } = yield* entryOf(owned.task)
        const bell = yield* bells.hang(owned.task.id, account)
        const known = attempt.handle ?? (yield* reconciled(owned, attempt, account))
        return yield* poll(account, upstreamModel, known, bell)
      }, Effect.scoped)

      return VendorWork.of({
        cancel: (id) => Effect.ignore(cancel(id)),
        resultOf: Effect.fn("VendorWork.resultOf")(function* (owned) {
          if (Option.isNone(owned.attempt)) return yield* fresh(owned, 1)
          const attempt = owned.attempt.value
          const { n, state } = attempt
          if (state === "refused") {
            const refusal = storedFailure(attempt.failure)
            return yield* isSubmittedAgain(refusal, n) ? fresh(owned, n + 1) : refusal
          }
          if (state === "ambiguous") return yield* ambiguous
          return yield* resumed(owned, attempt)
        })
      })
    })
  )
}

const entryWith = (catalog: Catalog["Service"]) => (task: TaskRow) =>
  Effect.mapError(
    Effect.fromOption(catalog.find(task.vendor, task.model, task.action)),
    () => new VendorError({ class: "OPERATOR", message: "the model left the catalog" })
  )

const cancelWith = (tasks: TaskStore["Service"], vendors: VendorClient["Service"]) =>
  Effect.fn("VendorWork.cancel")(function* (id: TaskId) {
    const job = yield* tasks.job(id)
    if (Option.isNone(job) || Option.isSome(doneIn(job.value.handle))) return
    const account = yield* vendors.owner(job.value.accountId)
    yield* cancelJob(account, job.value.handle)
  })

/** Polls within the vendor's limits; faults of the service's own account are told to the operator. */
const makeAsking = Effect.gen(function* () {
  const faults = yield* OperatorFaults
  const pacing = yield* RateLimiter

  const report = (account: VendorAccount, upstreamModel: string, error: VendorError) =>
    account.isSimulated === true
      ? Effect.void
      : faults.report(account.accountId, upstreamModel, error)

  /** A fault of the service's own account is told to the operator, and holds up later creates. */
  const watched = <A, E>(
    account: VendorAccount,
    upstreamModel: string,
    work: Effect.Effect<A, VendorError | E>
  ) =>
    Effect.tapError(work, (error) =>
      error instanceof VendorError && error.class === "OPERATOR"
        ? report(account, upstreamModel, error)
        : Effect.void
    )

  /**
   * Asks until the job has ended. A poll that went wrong for the moment is asked again, and so is one
   * that the vendor refuses to the account: the job was bought, and the operator can mend it. ADR 0115.
   */
  const poll = Effect.fnUntraced(function* (
    account: VendorAccount,
    upstreamModel: string,
    handle: Handle,
    bell: Bell
  ) {
    const done = doneIn(handle)
    if (Option.isSome(done)) return { account, result: done.value }
    const rate = account.rateOf?.("poll", upstreamModel)
    const asked = (rate === undefined ? Effect.void : pacing.take(rate)).pipe(
      Effect.andThen(account.poll(handle)),
      Effect.catchIf(isTransient, (error) =>
        Effect.succeed({
          _tag: "Running" as const,
          pollAfter: Duration.millis(error.retryAfterMillis ?? troubledPollMillis)
        })
      ),
      Effect.catchIf(isAccountRefused, (error) =>
        Effect.as(report(account, upstreamModel, error), refusedProgress)
      )
    )
    for (;;) {
      const progress = yield* asked
      if (progress._tag === "Done") return { account, result: progress.result }
      yield* bell.wait(Duration.min(progress.pollAfter, pollIntervalMax))
    }
  })

  return {
    watched,
    poll: (account: VendorAccount, upstreamModel: string, handle: Handle, bell: Bell) =>
      watched(account, upstreamModel, poll(account, upstreamModel, handle, bell))
  }
})

/** The wait after a poll that went wrong, when the vendor names none. */
const troubledPollMillis = 5000

/** The question itself was refused. A job that has failed for the account's sake is told in an answer. */
const isAccountRefused = (error: VendorError): boolean =>
  error.class === "OPERATOR" && error.httpStatus !== undefined

/** Mending an account takes minutes, and each refusal is told and shared by all processes. */
const refusedProgress: Progress = { _tag: "Running", pollAfter: pollIntervalMax }
