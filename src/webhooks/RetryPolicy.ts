import { Option } from "effect"

/**
 * The waits before retries 1 to 5, in milliseconds after the end of the failed attempt. Exact, without jitter.
 * docs/reference/webhooks.md#retries
 */
export const retryDelaysMillis: ReadonlyArray<number> = [
  15_000, 60_000, 300_000, 1_800_000, 3_600_000
]

/** The first attempt and one after each delay: six. */
export const attemptsMax = retryDelaysMillis.length + 1

/**
 * When the attempt after a failed one is due, in milliseconds of the Unix epoch. `None` if it was
 * the last and the delivery has `failed`.
 *
 * @param attemptNumber the attempt that just failed, 1 for the first
 * @param endedAtMillis when that attempt ended
 */
export const nextAttemptAt = (
  attemptNumber: number,
  endedAtMillis: number
): Option.Option<number> =>
  Option.map(
    Option.fromUndefinedOr(retryDelaysMillis[attemptNumber - 1]),
    (delayMillis) => endedAtMillis + delayMillis
  )
