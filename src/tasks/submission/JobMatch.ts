import { Option } from "effect"
import type { TaskId } from "../../domain/Ids.ts"
import type { Likeness, ListedJob, SubmitRequest } from "../../vendors/VendorClient.ts"

/** A submit that may have bought a job, because its outcome is unknown. Times in milliseconds. */
export interface Claimant {
  readonly taskId: TaskId
  /** The job, if there is one, was created in this interval of the gateway's clock. */
  readonly from: number
  readonly until: number
  /** `None` if the task was erased or its model has left the catalog. */
  readonly request: Option.Option<SubmitRequest>
  /** Whether the task waits for the job. Other submits matter only as possible owners of a job. */
  readonly isWaiting: boolean
  /**
   * The submit began before the store was restored. A job whose listing does not show its request may then belong to a
   * task that the store has lost.
   */
  readonly isOfLostTime: boolean
}

/** A listed job that belongs to no known task, with the task named by its callback URL if the list shows it. */
export interface FreeJob {
  readonly job: ListedJob
  readonly calls: Option.Option<TaskId>
}

/** The assumed maximum difference between the vendor's clock and the gateway's. */
export const skewMillis = 10_000

/**
 * Allows for a larger clock difference when judging whether a job may belong to another submit, or whether a task in
 * doubt has no job and may be submitted.
 */
export const rivalSkewMillis = 60_000

const isWithin = ({ from, until }: Claimant, { job }: FreeJob, slack: number): boolean =>
  job.createdAtMillis >= from - slack && job.createdAtMillis <= until + slack

const likeness = (claimant: Claimant, free: FreeJob): Likeness => {
  if (Option.isSome(free.calls)) return free.calls.value === claimant.taskId ? "same" : "other"
  if (!isWithin(claimant, free, rivalSkewMillis)) return "other"
  return Option.match(claimant.request, { onNone: () => "open", onSome: free.job.compare })
}

/** The jobs that may belong to a claimant. */
export const candidatesOf = (
  claimant: Claimant,
  free: ReadonlyArray<FreeJob>,
  slack = skewMillis
): ReadonlyArray<FreeJob> =>
  free.filter((it) => isWithin(claimant, it, slack) && likeness(claimant, it) !== "other")

/** Looks the claimant up by its task's id; a task without one has no candidates. */
export const candidatesFor =
  (claimants: ReadonlyArray<Claimant>, free: ReadonlyArray<FreeJob>) =>
  (id: TaskId, slack?: number): ReadonlyArray<FreeJob> => {
    const claimant = claimants.find(({ taskId }) => taskId === id)
    return claimant === undefined ? [] : candidatesOf(claimant, free, slack)
  }

/**
 * The job of each waiting claimant, where it is certain: the job has no owner, it is the only one that shows the
 * claimant's request, and it cannot belong to another claimant. A job that shows no request is used if it is the only
 * one. ADR 0194.
 */
export const certainJobs = (
  claimants: ReadonlyArray<Claimant>,
  free: ReadonlyArray<FreeJob>
): ReadonlyMap<TaskId, ListedJob> => {
  const found = new Map<TaskId, ListedJob>()
  const take = (wanted: Likeness) => {
    const open = claimants.filter(({ taskId }) => !found.has(taskId))
    for (const claimant of open) {
      if (!claimant.isWaiting || (wanted === "open" && claimant.isOfLostTime)) continue
      const alike = free.filter((it) => likeness(claimant, it) === wanted)
      const [only] = alike
      if (only === undefined || alike.length > 1) continue
      if (!isWithin(claimant, only, skewMillis)) continue
      if (wanted === "open" && free.some((it) => likeness(claimant, it) === "same")) continue
      if (open.some((it) => it !== claimant && likeness(it, only) !== "other")) continue
      found.set(claimant.taskId, only.job)
    }
  }
  take("same")
  take("open")
  return found
}
