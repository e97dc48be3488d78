import type { Clock } from "effect"
import { callLeaseSeconds, heartbeatSeconds } from "../domain/Limits.ts"

/** Shorter than others wait before they release the holds of calls: they may be a little ahead. */
const silentMillis = (callLeaseSeconds - heartbeatSeconds) * 1000

/**
 * What this process knows of its own lease. It counts from the moment before its last confirmed heartbeat was sent, so
 * that the lease never ends later here than in the database. The monotonic clock is never set back, and the other one
 * goes on while the machine sleeps: a silence is long when either says so.
 * docs/reference/processes.md#leases
 */
export class CallLease {
  readonly #clock: Clock.Clock
  #sentAt: { readonly monotonic: number; readonly wall: number }
  #silences = 0
  /** The current silence is counted. */
  #isSilent = false

  constructor(clock: Clock.Clock) {
    this.#clock = clock
    this.#sentAt = this.now()
  }

  /** The moment before a heartbeat is sent. */
  now() {
    const monotonic = Number(this.#clock.monotonicTimeNanosUnsafe()) / 1e6
    return { monotonic, wall: this.#clock.currentTimeMillisUnsafe() }
  }

  /** A heartbeat was confirmed. */
  confirmed(sentAt: { readonly monotonic: number; readonly wall: number }): void {
    this.#look()
    if (sentAt.monotonic >= this.#sentAt.monotonic) this.#sentAt = sentAt
    this.#isSilent = false
  }

  /** How many silences were longer than the lease; the current one is counted as soon as it is. */
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
