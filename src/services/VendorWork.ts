import { Context, Duration, Effect, Layer, Option } from "effect"
import { Catalog } from "../models/Catalog.ts"
import type { TaskId } from "../domain/Ids.ts"
import { TaskStore } from "../store/TaskStore.ts"
import type { OwnedTask, TaskRow } from "../store/TaskStore.ts"
import { vendorPolling } from "../vendors/Polling.ts"
import { VendorClient, VendorError } from "../vendors/VendorClient.ts"
import type { Handle, VendorAccount, VendorResult } from "../vendors/VendorClient.ts"
import { cancelJob, Fenced, isTransient, PaidSubmit, requestOf } from "./PaidSubmit.ts"
import type { Loss } from "./RunningTasks.ts"
import { TaskMedia } from "./TaskMedia.ts"

/** Gets a task's result from its vendor: buys the job, or goes on with the one that was bought. */
export class VendorWork extends Context.Service<
  VendorWork,
  {
    /** Asks the vendor to cancel the job that was last bought for a task. Best effort: never fails. */
    readonly cancel: (id: TaskId) => Effect.Effect<void>
    /** When the task is `lost` because it has ended (cancel), the vendor's job is cancelled too. */
    readonly resultOf: (
      owned: OwnedTask,
      lost: Effect.Effect<Loss>
    ) => Effect.Effect<VendorResult, VendorError | Fenced>
  }
>()("gateway/services/VendorWork") {
  static readonly layer = Layer.effect(
    VendorWork,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const inputs = yield* TaskMedia
      const paid = yield* PaidSubmit
      const tasks = yield* TaskStore
      const vendors = yield* VendorClient

      const entryOf = (task: TaskRow) =>
        Effect.mapError(
          Effect.fromOption(catalog.find(task.vendor, task.model, task.action)),
          () => new VendorError({ class: "OPERATOR", message: "the model left the catalog" })
        )

      const fresh = Effect.fnUntraced(function* (
        owned: OwnedTask,
        firstN: number,
        lost: Effect.Effect<Loss>
      ) {
        const entry = yield* entryOf(owned.task)
        const account = yield* vendors.choose(entry.vendor, entry.adapter)
        const media = yield* inputs.resolve(owned.task, entry)
        const submitted = yield* paid.submit({ owned, entry, account, media }, firstN)
        return submitted._tag === "Done"
          ? submitted.result
          : yield* whileWanted(
              account,
              submitted.handle,
              lost,
              Effect.delay(poll(account, submitted.handle), submitted.pollAfter)
            )
      })

      /** The process died between a submit and its record: never submitted twice blindly (contract 7). */
      const reconcile = Effect.fnUntraced(function* (
        owned: OwnedTask,
        n: number,
        account: VendorAccount
      ) {
        const entry = yield* entryOf(owned.task)
        const found = yield* account.reconcile(requestOf(owned.task, entry, []))
        if (Option.isNone(found)) return yield* ambiguous
        yield* paid.record(owned, { n, state: "submitted", handle: found.value, failure: null })
        return found.value
      })

      const cancel = Effect.fn("VendorWork.cancel")(function* (id: TaskId) {
        const job = yield* tasks.job(id)
        if (Option.isNone(job)) return
        const account = yield* vendors.owner(job.value.accountId)
        yield* cancelJob(account, job.value.handle)
      })

      return VendorWork.of({
        cancel: (id) => Effect.ignore(cancel(id)),
        resultOf: Effect.fn("VendorWork.resultOf")(function* (owned, lost) {
          if (Option.isNone(owned.attempt)) return yield* fresh(owned, 1, lost)
          const { accountId, handle, n, state } = owned.attempt.value
          if (state === "refused") return yield* fresh(owned, n + 1, lost)
          if (state === "ambiguous") return yield* ambiguous
          const account = yield* vendors.owner(accountId)
          const job = handle ?? (yield* reconcile(owned, n, account))
          return yield* whileWanted(account, job, lost, poll(account, job))
        })
      })
    })
  )
}

/** Polls until somebody else ends the task; then the job is of no use, and the vendor is told. */
const whileWanted = <A, E>(
  account: VendorAccount,
  handle: Handle,
  lost: Effect.Effect<Loss>,
  polling: Effect.Effect<A, E>
): Effect.Effect<A, E | Fenced> =>
  Effect.raceFirst(
    polling,
    Effect.flatMap(lost, (loss) =>
      (loss === "Ended" ? cancelJob(account, handle) : Effect.void).pipe(
        Effect.andThen(new Fenced())
      )
    )
  )

/** Asks until the job has ended; a poll that went wrong for the moment is asked again. */
const poll = Effect.fnUntraced(function* (account: VendorAccount, handle: Handle) {
  const asked = account.poll(handle).pipe(
    Effect.catchIf(isTransient, (error) =>
      Effect.succeed({
        _tag: "Running" as const,
        pollAfter: Duration.millis(error.retryAfterMillis ?? troubledPollMillis)
      })
    )
  )
  const last = yield* Effect.repeat(asked, vendorPolling)
  return last._tag === "Done" ? last.result : yield* nothing
})

/** The wait after a poll that went wrong, when the vendor names none. */
const troubledPollMillis = 5000

const ambiguous = new VendorError({
  class: "AMBIGUOUS",
  message: "It is not known whether the upstream took the job, so it was not submitted again"
})

const nothing = new VendorError({
  class: "FAILED",
  message: "The upstream ended without a result"
})
