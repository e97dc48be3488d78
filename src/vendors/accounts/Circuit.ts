/** The caller whose request failed; `null` for the service itself, whose failures count for everyone. */
export type Caller = string | null

/** When failures open a circuit. ADR 0132. */
export interface CircuitPolicy {
  /** The number of distinct failed requests. */
  readonly failures: number
  readonly openMillis: number
}

interface Failure {
  readonly at: number
  readonly caller: Caller
}

/** The rest of a period of this length; 0 if the clock was set back after the period began. */
export const restMillis = (until: number, length: number, nowMillis: number): number => {
  const rest = until - nowMillis
  return rest > length ? 0 : Math.max(0, rest)
}

/** How long a failure counts. */
const windowMillis = 60_000

/** The most failures that are kept: enough for every policy, including failures of a second caller. */
const keptMax = 8

/**
 * Opens when enough distinct requests have failed within a minute without a success. While only one caller's requests
 * have failed, it is open only for that caller. The first success closes it. After its period it is half open: one
 * request at a time tests whether it can close.
 */
export class Circuit {
  readonly #policy: CircuitPolicy
  /** Keyed by the digest of the request. */
  readonly #failures = new Map<string, Failure>()
  #openUntil = 0

  constructor(policy: CircuitPolicy) {
    this.#policy = policy
  }

  /** Closed and without failures that count. */
  get isAtRest(): boolean {
    return this.#openUntil === 0 && this.#failures.size === 0
  }

  state(nowMillis: number): "Closed" | "Open" | "HalfOpen" {
    if (this.#openUntil === 0) return "Closed"
    return this.remaining(nowMillis) > 0 ? "Open" : "HalfOpen"
  }

  /** Milliseconds until it is half open. */
  remaining(nowMillis: number): number {
    return restMillis(this.#openUntil, this.#policy.openMillis, nowMillis)
  }

  isOpenFor(caller: Caller, nowMillis: number): boolean {
    return this.remaining(nowMillis) > 0 && this.#concerns(caller)
  }

  /** Whether this request may be sent now. A half-open circuit opens again for all later requests. */
  admits(caller: Caller, digest: () => string, nowMillis: number): boolean {
    if (this.#openUntil === 0) return true
    if (this.remaining(nowMillis) > 0) return !this.#concerns(caller)
    this.#forget(nowMillis)
    if (this.#failures.size === 0) {
      this.succeed()
      return true
    }
    // A request that has already failed proves nothing by failing again
    if (this.#failures.has(digest())) return false
    this.#openUntil = nowMillis + this.#policy.openMillis
    return true
  }

  succeed(): void {
    this.#openUntil = 0
    if (this.#failures.size > 0) this.#failures.clear()
  }

  fail(caller: Caller, digest: string, nowMillis: number): void {
    this.#forget(nowMillis)
    if (this.#failures.has(digest)) return
    const [oldest] = this.#failures.keys()
    if (oldest !== undefined && this.#failures.size >= keptMax) this.#failures.delete(oldest)
    this.#failures.set(digest, { at: nowMillis, caller })
    if (this.#failures.size >= this.#policy.failures) {
      this.#openUntil = nowMillis + this.#policy.openMillis
    }
  }

  #concerns(caller: Caller): boolean {
    const callers = new Set(Array.from(this.#failures.values(), (failure) => failure.caller))
    return caller === null || callers.has(null) || callers.size > 1 || callers.has(caller)
  }

  #forget(nowMillis: number): void {
    for (const [digest, { at }] of this.#failures) {
      if (Math.abs(nowMillis - at) >= windowMillis) this.#failures.delete(digest)
    }
  }
}
