import type { Clock } from "effect"
import { callLeaseSeconds, heartbeatSeconds } from "../../domain/limits/Limits.ts"

/** Shorter than the wait of others before they release holds of calls, because their clocks may be slightly ahead. */
const silentMillis = (callLeaseSeconds - heartbeatSeconds) * 1000

/**
 * This process's view of its lease. It counts from the moment before its last confirmed heartbeat was sent, so
 * that the lease never ends later here than in the database. The monotonic clock is never set back, and the wall clock
 * continues while the machine sleeps: a silence is too long if either clock says so.
 * docs/reference/processes.md#leases
 */
export class CallLease {
  readonly #clock: Clock.Clock
  #sentAt: { readonly monotonic: number; readonly wall: number }
  #silences = 0
  /** Whether the current silence was counted. */
  #isSilent = false

  constructor(clock: Clock.Clock) {
    this.#clock = clock
    this.#sentAt = this.now()
  }

  /** Call before a heartbeat is sent. */
  now() {
    const monotonic = Number(this.#clock.monotonicTimeNanosUnsafe()) / 1e6
    return { monotonic, wall: this.#clock.currentTimeMillisUnsafe() }
  }

  /** Call when a heartbeat was confirmed. */
  confirmed(sentAt: { readonly monotonic: number; readonly wall: number }): void {
    this.#look()
    if (sentAt.monotonic >= this.#sentAt.monotonic) this.#sentAt = sentAt
    this.#isSilent = false
  }

  /** Number of silences longer than the lease, including the current one. */
  silences(): number {
    this.#look()
    return this.#silences
  }

  #look(): void {
    if (this.#isSilent) return
    const { monotonic, wall } = this.now()
    this.#isSilent =
      monotonic - this.#sentAt.monotonic >= silentMillis ||
      Math.abs(wall - this.#sentAt.wall) >= silentMillis
    if (this.#isSilent) this.#silences += 1
  }
}
