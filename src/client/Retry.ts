/** A failed attempt of a request. */
export interface FailedAttempt {
  /**
   * Whether the request may be sent twice: it reads, sets or removes, or its route supports idempotency keys and it
   * has one.
   */
  readonly isRepeatable: boolean
  /** HTTP status; 0 without a complete response. */
  readonly status: number
  /** An earlier attempt with the same idempotency key got no response and may still be running. */
  readonly isUnderWay: boolean
  /** Seconds. */
  readonly retryAfter: number | undefined
  /** The response says `x-should-retry: false`. */
  readonly isFinal: boolean
}

/** Milliseconds. */
const backoffFirst = 500
const backoffMax = 8000

/** Seconds; a longer `Retry-After` is left to the caller. */
export const retryAfterMax = 60

/**
 * Whether to resend a failed request. A request that is not repeatable is never resent: one that may have bought
 * something is repeated only if the gateway recognizes the repeat. ADR 0218
 */
export const isRetried = ({
  isFinal,
  isRepeatable,
  isUnderWay,
  retryAfter,
  status
}: FailedAttempt): boolean => {
  if (!isRepeatable || isFinal) return false
  if (retryAfter !== undefined && retryAfter > retryAfterMax) return false
  return isTransient(status, isUnderWay)
}

/** Whether the same request may have a different outcome later. */
export const isTransient = (status: number, isUnderWay: boolean): boolean =>
  status === 0 ||
  status === 408 ||
  (status === 409 && isUnderWay) ||
  status === 429 ||
  status >= 500

/**
 * Milliseconds before the next attempt: exponential with full jitter, and never before `Retry-After`.
 * `retry` counts from 0, `random` is 0 to 1.
 */
export const retryDelay = (retry: number, retryAfter: number | undefined, random: number): number =>
  (retryAfter ?? 0) * 1000 + Math.min(backoffMax, backoffFirst * 2 ** retry) * random
