import { Duration } from "effect"

/**
 * Failures that a test can request; each happens once, and the end of the gateway fails if it was not reached:
 *
 * - `crash before submit`: the process dies before the vendor has the job
 * - `crash after submit`: the vendor has accepted the job, and the process dies before it has recorded that
 * - `crash before finish`: the results are stored, and the process dies before the task has ended
 * - `crash after finish`: the process dies when the task has ended, before any notification
 * - `crash before webhook`: an attempt is claimed, and the process dies before it is sent
 * - `crash after webhook`: the receiver has the attempt, and the process dies before it has recorded that
 * - `vendor accepts then connection lost`: the vendor has the job, and its response is lost
 *
 * A process that dies is followed by another one at once, with the same store.
 * docs/developing.md#failures
 */
export type Failure =
  | "crash before submit"
  | "crash after submit"
  | "crash before finish"
  | "crash after finish"
  | "crash before webhook"
  | "crash after webhook"
  | "vendor accepts then connection lost"

/** What can be unavailable for some time: statements do not reach the store, or attempts do not reach receivers. */
export type Absence = "store away" | "receivers away"

/** Requested failures that have not happened yet. They persist when a process dies. */
export class Failures {
  readonly #asked: Array<Failure> = []
  readonly #until = new Map<Absence, number>()
  readonly #now: () => number

  /** `now`: Unix time in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  ask(failure: Failure): void {
    this.#asked.push(failure)
  }

  /** Whether to fail now. Each requested failure happens once. */
  take(failure: Failure): boolean {
    const index = this.#asked.indexOf(failure)
    if (index >= 0) this.#asked.splice(index, 1)
    return index >= 0
  }

  setAway(what: Absence, duration: Duration.Input): void {
    this.#until.set(what, this.#now() + Duration.toMillis(Duration.fromInputUnsafe(duration)))
  }

  isAway(what: Absence): boolean {
    return this.#now() < (this.#until.get(what) ?? 0)
  }

  /** Failures that were requested but not reached yet. */
  get pending(): ReadonlyArray<Failure> {
    return this.#asked
  }
}
