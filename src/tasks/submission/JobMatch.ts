import { Option } from "effect"
import type { TaskId } from "../../domain/Ids.ts"
import type { Likeness, ListedJob, SubmitRequest } from "../../vendors/VendorClient.ts"

/** A submit that may have bought a job, because its outcome is not known. Times in milliseconds. */
export interface Claimant {
  readonly taskId: TaskId
  /** The job, if there is one, was created in this time, by the clocks of the gateway. */
  readonly from: number
  readonly until: number
  /** Not known of a task that was erased, or whose model left the catalog. */
  readonly request: Option.Option<SubmitRequest>
  /** Its task waits for the job. Of others it is only known that a job may be theirs. */
  readonly isWaiting: boolean
  /**
   * Its submit began before the store was restored: a job that shows no request may be of a task that the store has
   * lost.
   */
  readonly isOfLostTime: boolean
}

/** A listed job without an owner, and the task of its callback URL, where the list shows that. */
export interface FreeJob {
  readonly job: ListedJob
  readonly calls: Option.Option<TaskId>
}

/** The vendor's clock differs from the gateway's by this at most. */
export const skewMillis = 10_000

/** A job may be of another submit although the clocks differ by more. */
const rivalSkewMillis = 60_000

const isWithin = ({ from, until }: Claimant, { job }: FreeJob, slack: number): boolean =>
  job.createdAtMillis >= from - slack && job.createdAtMillis <= until + slack

const likeness = (claimant: Claimant, free: FreeJob): Likeness => {
  if (Option.isSome(free.calls)) return free.calls.value === claimant.taskId ? "same" : "other"
  if (!isWithin(claimant, free, rivalSkewMillis)) return "other"
  return Option.match(claimant.request, { onNone: () => "open", onSome: free.job.compare })
}

/** The jobs that may be the one of a claimant. */
export const candidatesOf = (
  claimant: Claimant,
  free: ReadonlyArray<FreeJob>
): ReadonlyArray<FreeJob> =>
  free.filter((it) => isWithin(claimant, it, skewMillis) && likeness(claimant, it) !== "other")

/** The same by the id of its task. */
export const candidatesFor =
  (claimants: ReadonlyArray<Claimant>, free: ReadonlyArray<FreeJob>) =>
  (id: TaskId): ReadonlyArray<FreeJob> => {
    const claimant = claimants.find(({ taskId }) => taskId === id)
    return claimant === undefined ? [] : candidatesOf(claimant, free)
  }

/**
 * The job of each waiting claimant, where it is certain: of all jobs without an owner it alone shows the
 * request, and no other claimant's job can it be. A job that shows nothing is taken if it is the only one.
 * ADR 0194.
 */
export const certainJobs = (
  claimants: ReadonlyArray<Claimant>,
  free: ReadonlyArray<FreeJob>
): ReadonlyMap<TaskId, ListedJob> => {
  const found = new Map<TaskId, ListedJob>()
  const taken = new Set<FreeJob>()
  const take = (wanted: Likeness) => {
    const open = claimants.filter(({ taskId }) => !found.has(taskId))
    const left = free.filter((it) => !taken.has(it))
    for (const claimant of open) {
      if (!claimant.isWaiting || (wanted === "open" && claimant.isOfLostTime)) continue
      const alike = left.filter((it) => likeness(claimant, it) === wanted)
      const [only] = alike
      if (only === undefined || alike.length > 1) continue
      if (!isWithin(claimant, only, skewMillis)) continue
      if (wanted === "open" && left.some((it) => likeness(claimant, it) === "same")) continue
      if (open.some((it) => it !== claimant && likeness(it, only) !== "other")) continue
      found.set(claimant.taskId, only.job)
      taken.add(only)
    }
  }
  take("same")
  take("open")
  return found
}
