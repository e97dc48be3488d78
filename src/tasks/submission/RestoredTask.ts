import { DateTime, Effect, Option } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import { nextPlace } from "../../domain/task/Candidate.ts"
import { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { OwnedTask } from "../running/OwnedTask.ts"
import { listQueue } from "../running/TaskQueue.ts"
import { Fenced, PaidSubmit } from "./PaidSubmit.ts"
import { waits } from "./SubmitStep.ts"
import type { VendorStep } from "./SubmitStep.ts"
import { entryWith } from "./TaskEntry.ts"
import { VendorAttemptStore } from "./VendorAttemptStore.ts"

const isUnsubmitted = ({ attempt }: OwnedTask): boolean =>
  Option.isNone(attempt) || attempt.value.state === "refused"

/** The error of a task in doubt if the vendor cannot say whether it has its job. */
const lostWithStore = new VendorError({
  class: "AMBIGUOUS",
  message:
    "The store was restored to an earlier time, and it is unknown whether the upstream accepted the job, so it was not " +
    "submitted again"
})

/**
 * Submits a task. If the task is in doubt, first searches for its job at each account that may have it, one account
 * after the other. Fails if an account cannot list its jobs. docs/standbys.md#tasks-in-doubt
 */
export const makeUnlessInDoubt = Effect.gen(function* () {
  const attempts = yield* VendorAttemptStore
  const entryOf = entryWith(yield* CatalogVersions)
  const paid = yield* PaidSubmit
  const vendors = yield* VendorClient

  const accountsOf = Effect.fnUntraced(function* ({ task }: OwnedTask) {
    // Simulated jobs cost nothing, so they can be submitted again
    if (task.sandbox) return []
    // A listed job is compared with the request of one model, but another model of the alias may have bought it
    if (nextPlace(task) !== undefined) return yield* lostWithStore
    return vendors.accountsFor(yield* entryOf(task))
  })

  /**
   * Stores the search as an attempt without a body. From then on the task is treated like one whose submit got no
   * response.
   */
  const beginSearch = Effect.fnUntraced(function* (owned: OwnedTask, account: VendorAccount) {
    const { epoch, task } = owned
    const n = Option.match(owned.attempt, { onNone: () => 0, onSome: (it) => it.n }) + 1
    const search = { taskId: task.id, epoch, n, vendor: task.vendor, accountId: account.accountId }
    if (!(yield* retryStore(attempts.beginSearch(search)))) return yield* new Fenced()
    const dueAt = yield* DateTime.now
    const attempt = { n, state: "submitting", handle: null, failure: null } as const
    yield* paid.record(owned, attempt, { dueAt, queue: listQueue(account) })
    return waits(dueAt)
  })

  return Effect.fnUntraced(function* <E, R>(
    owned: OwnedTask,
    submit: (owned: OwnedTask) => Effect.Effect<VendorStep, E, R>
  ) {
    if (!owned.inDoubt || !isUnsubmitted(owned)) return yield* submit(owned)
    const accounts = yield* accountsOf(owned)
    const searched = yield* retryStore(attempts.searched(owned.task.id))
    const left = accounts.filter(({ accountId }) => !searched.has(accountId))
    if (left.some(({ list }) => list === undefined)) return yield* lostWithStore
    const [next] = left
    // No account has the job
    if (next === undefined) return yield* submit(owned)
    return yield* beginSearch(owned, next)
  })
})
