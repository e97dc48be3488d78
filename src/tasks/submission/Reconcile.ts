import { Clock, Context, DateTime, Duration, Effect, Layer, Option, Result } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"
import { submitTimeout } from "../../vendors/Polling.ts"
import type { ListedJob, SubmitRequest, VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import { Callbacks } from "../callbacks/Callbacks.ts"
import type { OwnedTask } from "../running/OwnedTask.ts"
import { betweenListsMillis, listQueue, pollQueue, submitQueue } from "../running/TaskQueue.ts"
import {
  candidatesFor,
  candidatesOf,
  certainJobs,
  rivalSkewMillis,
  skewMillis
} from "./JobMatch.ts"
import type { Claimant, FreeJob } from "./JobMatch.ts"
import { Fenced, isTransient } from "./PaidSubmit.ts"
import { entryWith, requestOf } from "./TaskEntry.ts"
import { VendorAttemptStore } from "./VendorAttemptStore.ts"
import type { Settled, Unsettled } from "./VendorAttemptStore.ts"
import { failureText } from "./VendorFailure.ts"

/**
 * Finds the jobs of submits whose responses were lost, if the vendor can list jobs. One list request serves all tasks
 * that wait for a job at the account, over all processes. docs/reference/vendors.md#reconciliation, ADR 0194.
 */
export class Reconcile extends Context.Service<
  Reconcile,
  {
    /**
     * Searches once, on behalf of a task that was claimed from the account's queue of lists. A task whose job is found
     * is polled next; a task that is given up fails. Returns when to search again. Submits nothing.
     */
    readonly search: (
      owned: OwnedTask,
      account: VendorAccount
    ) => Effect.Effect<DateTime.Utc, Fenced>
  }
>()("gateway/tasks/submission/Reconcile") {
  static readonly layer = Layer.effect(
    Reconcile,
    Effect.gen(function* () {
      const attempts = yield* VendorAttemptStore
      const listed = yield* makeListed
      const { requestsOf } = yield* makeRequests

      return Reconcile.of({
        search: Effect.fn("Reconcile.search")(function* (owned, account) {
          const { name: queue } = listQueue(account)
          const taskId = owned.task.id
          const waiting = yield* retryStore(attempts.waiting({ queue, taskId, limit: waitingMax }))
          const requests = yield* requestsOf(waiting.map((it) => it.taskId))
          const asked = yield* DateTime.now
          const list = yield* listed(account, waiting, requests)
          const now = yield* DateTime.now
          const next = DateTime.add(now, { milliseconds: betweenListsMillis })
          const decided = waiting.flatMap((it): ReadonlyArray<Settled> => {
            const known = requests.get(it.taskId)
            if (known === undefined) return []
            const found = list.found.get(it.taskId)
            const { n, taskId: id } = it
            if (found !== undefined) {
              const outcome = {
                state: "submitted",
                handle: found.handle(known.request),
                failure: null
              } as const
              const polls = pollQueue(account, known.request.upstreamModel).name
              return [{ taskId: id, n, outcome, queue: polls, dueAt: now }]
            }
            // A slow list may show the jobs as they were when it was requested
            if (DateTime.isLessThan(asked, givenUpAt(it, list.hopeOf(it.taskId)))) return []
            const isAbsent = it.inDoubt && list.isAbsent(it.taskId)
            const outcome = isAbsent ? absent : givenUp
            return [{ taskId: id, n, outcome, queue: submitQueue(known.task).name, dueAt: now }]
          })
          const own = waiting.find((it) => it.taskId === taskId)
          const settled = decided.some((it) => it.taskId === taskId)
            ? decided
            : [...decided, { taskId, n: own?.n ?? 0, queue, dueAt: next }]
          const { epoch } = owned
          const isWritten = yield* retryStore(
            attempts.settle({ queue, taskId, epoch, settled, now })
          )
          if (!isWritten) return yield* new Fenced()
          return decided.length > 0 ? now : next
        })
      })
    })
  )
}

/**
 * The maximum number of tasks in one search. Further tasks wait for a later search, and their submits count as
 * unsettled.
 */
const waitingMax = 500

interface Known {
  readonly task: TaskRow
  readonly request: SubmitRequest
}

const makeRequests = Effect.gen(function* () {
  const attempts = yield* VendorAttemptStore
  const entryOf = entryWith(yield* CatalogVersions)
  return {
    /** The submitted requests of these tasks, without those that can no longer be reconstructed. */
    requestsOf: Effect.fnUntraced(function* (ids: ReadonlyArray<TaskId>) {
      const known = new Map<TaskId, Known>()
      if (ids.length === 0) return known
      for (const task of yield* retryStore(attempts.tasks(ids))) {
        const entry = yield* Effect.option(entryOf(task))
        if (Option.isSome(entry)) {
          known.set(task.id, { task, request: requestOf(task, entry.value, []) })
        }
      }
      return known
    })
  }
})

/** What a later search may still find for a task. */
type Hope = "nothing" | "owners" | "more"

interface Search {
  readonly found: ReadonlyMap<TaskId, ListedJob>
  readonly hopeOf: (id: TaskId) => Hope
  /** Whether the list is complete and shows no job that may belong to this task. */
  readonly isAbsent: (id: TaskId) => boolean
}

const claimantOf = (
  submit: Unsettled,
  now: number,
  {
    restoredAt,
    ...known
  }: Pick<Claimant, "request" | "isWaiting"> & { readonly restoredAt: Option.Option<DateTime.Utc> }
): Claimant => ({
  ...windowOf(submit, now),
  ...known,
  taskId: submit.taskId,
  isOfLostTime: Option.exists(restoredAt, DateTime.isGreaterThanOrEqualTo(submit.startedAt))
})

/** Lists the jobs, removes those that belong to other tasks, and matches the rest. */
const makeListed = Effect.gen(function* () {
  const attempts = yield* VendorAttemptStore
  const callbacks = yield* Callbacks
  const { requestsOf } = yield* makeRequests

  /**
   * Jobs without an owner, and all submits that may have bought them. Read after the list, so that no submit is missed.
   */
  const free = Effect.fnUntraced(function* (
    { accountId }: VendorAccount,
    jobs: ReadonlyArray<ListedJob>,
    waiting: ReadonlyArray<Unsettled>,
    requests: ReadonlyMap<TaskId, Known>
  ) {
    const times = jobs.map(({ createdAtMillis }) => createdAtMillis)
    const around = yield* retryStore(
      attempts.around({
        accountId,
        from: DateTime.makeUnsafe(Math.min(...times) - overlapMillis),
        until: DateTime.makeUnsafe(Math.max(...times) + overlapMillis),
        jobIds: jobs.map(({ jobId }) => jobId)
      })
    )
    const isWaiting = new Set(waiting.map(({ taskId }) => taskId))
    const others = around.unsettled.filter(({ taskId }) => !isWaiting.has(taskId))
    const known = new Map([...requests, ...(yield* requestsOf(others.map(({ taskId }) => taskId)))])
    const now = yield* Clock.currentTimeMillis
    const restoredAt = yield* retryStore(attempts.restoredAt)
    const claimants = [...waiting, ...others].map((it) =>
      claimantOf(it, now, {
        restoredAt,
        request: Option.map(Option.fromUndefinedOr(known.get(it.taskId)), ({ request }) => request),
        isWaiting: isWaiting.has(it.taskId)
      })
    )
    const ownerless = yield* Effect.forEach(
      jobs.filter(({ jobId }) => !around.owned.has(jobId)),
      (job) =>
        Effect.map(
          job.callbackUrl === undefined ? Effect.succeedNone : callbacks.taskIn(job.callbackUrl),
          (calls): FreeJob => ({ job, calls })
        )
    )
    return { claimants, ownerless }
  })

  return Effect.fnUntraced(function* (
    account: VendorAccount,
    waiting: ReadonlyArray<Unsettled>,
    requests: ReadonlyMap<TaskId, Known>
  ) {
    const nothing: Search = { found: new Map(), hopeOf: () => "nothing", isAbsent: () => false }
    if (account.list === undefined || requests.size === 0) return nothing
    const now = yield* Clock.currentTimeMillis
    const windows = waiting.map((it) => windowOf(it, now))
    const slack = waiting.some(({ inDoubt }) => inDoubt) ? rivalSkewMillis : skewMillis
    const list = yield* Effect.result(
      account.list({
        requests: [...requests.values()].map(({ request }) => request),
        from: Math.min(...windows.map(({ from }) => from)) - slack,
        until: Math.max(...windows.map(({ until }) => until)) + slack
      })
    )
    if (Result.isFailure(list)) {
      const error = list.failure
      yield* Effect.logWarning(`Listing the jobs of ${account.accountId} failed`, error)
      return { ...nothing, hopeOf: () => (isTransient(error) ? "more" : "nothing") } as const
    }
    if (list.success.length === 0) return { ...nothing, isAbsent: () => true }
    const { claimants, ownerless } = yield* free(account, list.success, waiting, requests)
    const first = certainJobs(claimants, ownerless)
    const jobs = yield* withRecords(claimants, ownerless, first)
    const found = jobs === ownerless ? first : certainJobs(claimants, jobs)
    return searchOf(claimants, jobs, found)
  })
})

/** The maximum number of job records that one search reads to decide between several tasks. */
const recordsMax = 10

const withRecords = Effect.fnUntraced(function* (
  claimants: ReadonlyArray<Claimant>,
  free: ReadonlyArray<FreeJob>,
  found: ReadonlyMap<TaskId, ListedJob>
) {
  const unclear = new Set(
    claimants
      .filter((it) => it.isWaiting && !found.has(it.taskId))
      .flatMap((it) => candidatesOf(it, free))
      .filter(({ job }) => job.read !== undefined)
      .slice(0, recordsMax)
  )
  if (unclear.size === 0) return free
  return yield* Effect.forEach(free, (it) =>
    it.job.read !== undefined && unclear.has(it)
      ? Effect.map(
          Effect.orElseSucceed(it.job.read, () => it.job),
          (job): FreeJob => ({ ...it, job })
        )
      : Effect.succeed(it)
  )
})

const searchOf = (
  claimants: ReadonlyArray<Claimant>,
  free: ReadonlyArray<FreeJob>,
  found: Search["found"]
): Search => {
  const candidates = candidatesFor(claimants, free)
  return {
    found,
    hopeOf: (id) => hopeOf(candidates(id)),
    isAbsent: (id) => candidates(id, rivalSkewMillis).length === 0
  }
}

const hopeOf = (candidates: ReadonlyArray<FreeJob>): Hope => {
  if (candidates.length === 0) return "nothing"
  return candidates.some(({ job }) => job.read !== undefined) ? "more" : "owners"
}

/** The job of a submit was created between the start of the submit and the vendor's time limit. */
const windowOf = ({ answeredAt, startedAt }: Unsettled, now: number) => {
  const from = DateTime.toEpochMillis(startedAt)
  const end = answeredAt === null ? now : DateTime.toEpochMillis(answeredAt)
  return { from, until: Math.max(end, from + Duration.toMillis(submitTimeout)) }
}

/** A found job may belong to any submit that started within this time of it. */
const overlapMillis = Duration.toMillis(Duration.minutes(5))

/**
 * How long to keep searching. A list may show a new job late; other submits of the same time may still receive their
 * responses and so identify their jobs; and a job may show its request only once it has ended.
 */
const patience: { readonly [hope in Hope]: Duration.Duration } = {
  nothing: Duration.seconds(10),
  owners: Duration.seconds(75),
  more: Duration.minutes(10)
}

const givenUpAt = ({ answeredAt, startedAt }: Unsettled, hope: Hope): DateTime.Utc =>
  DateTime.addDuration(answeredAt ?? startedAt, patience[hope])

/**
 * The error of a task whose submit has no known outcome. Such a submit is never repeated.
 * docs/reference/vendors.md#paid-submit-protocol
 */
export const ambiguous = new VendorError({
  class: "AMBIGUOUS",
  message: "It is unknown whether the upstream accepted the job, so it was not submitted again"
})

/** The outcome of a submit in doubt that never reached the vendor. The task may be submitted. */
const absent = {
  state: "refused",
  handle: null,
  failure: failureText(
    new VendorError({ class: "RETRYABLE", message: "The upstream lists no job of this task" })
  )
} as const

const givenUp = { state: "ambiguous", handle: null, failure: failureText(ambiguous) } as const
