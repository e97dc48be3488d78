/** A failed attempt of a request. */
export interface FailedAttempt {
  /**
   * Whether the request may be sent twice: it reads, sets or removes something, or it has an idempotency key that its
   * route supports.
   */
  readonly isRepeatable: boolean
  /** HTTP status; 0 without a complete response. */
  readonly status: number
  /** Whether an earlier attempt with the same idempotency key got no response and may still be running. */
  readonly isUnderWay: boolean
  /** Seconds. */
  readonly retryAfter: number | undefined
  /** Whether the response has `x-should-retry: false`. */
  readonly isFinal: boolean
}

/** The first delay in milliseconds. */
const backoffFirst = 500
const backoffMax = 8000

/** Seconds. If `Retry-After` is longer, the caller has to wait. */
export const retryAfterMax = 60

/**
 * Whether to resend a failed request. A request that is not repeatable is never resent: if it may have bought
 * something, it may only be repeated where the gateway recognizes the repeat. ADR 0218
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
 * Milliseconds before the next attempt: exponential backoff with full jitter, but never before `Retry-After`. `retry`
 * counts from 0, `random` is between 0 and 1.
 */
export const retryDelay = (retry: number, retryAfter: number | undefined, random: number): number =>
  (retryAfter ?? 0) * 1000 + Math.min(backoffMax, backoffFirst * 2 ** retry) * random
