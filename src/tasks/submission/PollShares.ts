import type { UserId } from "../../domain/Ids.ts"

/** The part of the rate that polls use. The rest is for lists, cancels and users with few jobs. */
const sharedPart = 0.95

/** The polls per second that each user may make if all jobs together would exceed the rate. */
export const levelOf = (jobs: Iterable<number>, perSecond: number): number => {
  const demands = Array.from(jobs, (count) => count / naturalSeconds).sort((a, b) => a - b)
  let left = perSecond * sharedPart
  for (const [index, demand] of demands.entries()) {
    const users = demands.length - index
    if (demand * users >= left) return left / users
    left -= demand
  }
  return Number.POSITIVE_INFINITY
}

/** The interval between polls of a job when the rate is not exceeded. */
const naturalSeconds = 2.5

/** The level is recomputed after this time, or when the number of jobs has changed by a twentieth. */
const levelMillis = 250

/**
 * The jobs that are polled under one rate limit, by user. If a user's jobs would exceed the user's fair share of the
 * rate, they are polled at longer intervals, so that no user's jobs wait behind another's. ADR 0195.
 */
export class PollShares {
  readonly #jobs = new Map<UserId, number>()
  #total = 0
  #level = Number.POSITIVE_INFINITY
  #levelAt = Number.NEGATIVE_INFINITY
  #levelTotal = 0
  /** When the jobs of all processes were last read, and how long to wait before the next read. */
  readAt = Number.NEGATIVE_INFINITY
  readAgainMillis = 0
  /** When the vendor last sent a callback, in Unix milliseconds. */
  calledAt = Number.NEGATIVE_INFINITY

  replace(waiting: ReadonlyArray<{ readonly userId: UserId; readonly jobs: number }>): void {
    this.#jobs.clear()
    this.#total = 0
    for (const { jobs, userId } of waiting) this.add(userId, jobs)
    this.#levelAt = Number.NEGATIVE_INFINITY
  }

  add(userId: UserId, change: number): void {
    const count = Math.max(0, (this.#jobs.get(userId) ?? 0) + change)
    this.#total += count - (this.#jobs.get(userId) ?? 0)
    if (count === 0) this.#jobs.delete(userId)
    else this.#jobs.set(userId, count)
  }

  /** The minimum time between two polls of a job of this user. */
  intervalMillis(userId: UserId, perSecond: number, now: number): number {
    if (this.#total <= perSecond * sharedPart * naturalSeconds) return 0
    const isChanged = Math.abs(this.#total - this.#levelTotal) * 20 > this.#total
    if (isChanged || Math.abs(now - this.#levelAt) >= levelMillis) {
      this.#level = levelOf(this.#jobs.values(), perSecond)
      this.#levelAt = now
      this.#levelTotal = this.#total
    }
    return ((this.#jobs.get(userId) ?? 0) / this.#level) * 1000
  }
}
