import type { Clock } from "effect"
import { callLeaseSeconds, heartbeatSeconds } from "../../domain/limits/Limits.ts"

/** Shorter than the time after which others release the holds of calls, because their clocks may run slightly ahead. */
const silentMillis = (callLeaseSeconds - heartbeatSeconds) * 1000

/**
 * This process's view of its lease. The lease counts from the moment before the last confirmed heartbeat was sent, so
 * it never ends later here than in the database. Both clocks are checked: the monotonic clock is never set back, and
 * the wall clock keeps running while the machine sleeps. The lease has ended if either says so.
 * docs/reference/processes.md#leases
 */
export class CallLease {
  readonly #clock: Clock.Clock
  #sentAt: { readonly monotonic: number; readonly wall: number }
  #silences = 0
  /** Whether the current silence has been counted. */
  #isSilent = false

  constructor(clock: Clock.Clock) {
    this.#clock = clock
    this.#sentAt = this.now()
  }

  /** Reads both clocks. Call before sending a heartbeat. */
  now() {
    const monotonic = Number(this.#clock.monotonicTimeNanosUnsafe()) / 1e6
    return { monotonic, wall: this.#clock.currentTimeMillisUnsafe() }
  }

  /** Call when the heartbeat has been confirmed. */
  confirmed(sentAt: { readonly monotonic: number; readonly wall: number }): void {
    this.#check()
    if (sentAt.monotonic >= this.#sentAt.monotonic) this.#sentAt = sentAt
    this.#isSilent = false
  }

  /** The number of silences that were longer than the lease, including the current one. */
  silences(): number {
    this.#check()
    return this.#silences
  }

  #check(): void {
    if (this.#isSilent) return
    const { monotonic, wall } = this.now()
    this.#isSilent =
      monotonic - this.#sentAt.monotonic >= silentMillis ||
      Math.abs(wall - this.#sentAt.wall) >= silentMillis
    if (this.#isSilent) this.#silences += 1
  }
}
