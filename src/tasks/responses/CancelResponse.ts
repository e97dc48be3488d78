import { DateTime, Duration, Effect, Option } from "effect"
import type { TaskView } from "../../db/TaskRow.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import { AccountKeys } from "../../process/accounts/AccountKeys.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import { makeCancelNow } from "../completion/TaskCompletion.ts"
import { TaskStore } from "../TaskStore.ts"
import { TaskWatch } from "../TaskWatch.ts"
import { VendorBatchStore } from "../vendorbatches/VendorBatchStore.ts"

/**
 * Cancels a background response or a vendor's batch. If the vendor can report its usage, the job is cancelled at the
 * vendor, and the next poll ends the task and charges that usage, because the client may already have read most of the
 * stream. Otherwise the task ends at once. Returns `false` if it had already ended. docs/reference/background.md#cancel
 */
export const makeCancelResponse = Effect.gen(function* () {
  const accounts = yield* AccountKeys
  const cancelNow = yield* makeCancelNow
  const notifier = yield* WorkNotifier
  const tasks = yield* TaskStore
  const watch = yield* TaskWatch
  const batches = yield* VendorBatchStore

  return Effect.fn("cancelResponse")(function* (task: TaskView) {
    const job = yield* tasks.job(task.id)
    if (Option.isNone(job)) return yield* cancelNow(task)
    const { accountId, handle } = job.value
    const account = yield* Effect.mapError(accounts.ownerOf(accountId), () => unreachable)
    if (account.showsCancelled !== true) return yield* cancelNow(task)
    yield* account.cancel(handle).pipe(
      Effect.catchIf(
        (error) => error instanceof VendorError && hasEnded(error),
        () => Effect.void
      ),
      Effect.mapError(() => unreachable)
    )
    const due = yield* tasks.makeDue(task.id, yield* DateTime.now)
    if (due === "Ended") return false
    yield* notifier.notifyDue(due === "Due" ? "now" : "after its step")
    if (task.resultKind === "batches") {
      // The vendor finishes the requests it has begun, which may take minutes, so this does not wait
      yield* batches.noteCancelling(task.id, yield* DateTime.now)
      return true
    }
    // If the next poll takes longer than this, the caller returns the response in its current state
    yield* Effect.ignore(watch.untilEnd(task, endWait, Effect.void))
    return true
  })
})

/** The vendor refuses to cancel a job that has already ended; the next poll finds its outcome. */
const hasEnded = ({ class: kind }: VendorError): boolean =>
  kind === "LOST" || kind === "FATAL_CLIENT"

const endWait = Duration.seconds(10)

const unreachable: Problem = problem(
  5002,
  "The vendor could not be asked to cancel this, which is still running: try again"
)
