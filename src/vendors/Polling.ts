import { Duration } from "effect"

/** Timeout of the submit of a polled job; the job is created within this time. */
export const submitTimeout = Duration.seconds(60)

/** The longest poll interval that a vendor can request. */
export const pollIntervalMax = Duration.seconds(60)

/** The wait before the next poll of a job of this age. docs/reference/vendors.md#poll-interval */
export const pollIntervalAtAge = (ageMillis: number): Duration.Duration => {
  if (ageMillis < 60_000) return Duration.millis(2500)
  if (ageMillis < 300_000) return Duration.seconds(5)
  return ageMillis < 900_000 ? Duration.seconds(10) : Duration.seconds(20)
}
