import { Duration } from "effect"

/** Spec, polling guidance: every 2 to 3 seconds. A vendor may ask for more, or a test for less. */
export const pollAtMost = Duration.seconds(60)

/**
 * The wait before the next poll of a job of this age: 2.5 seconds at first (spec, polling guidance),
 * slower for long jobs.
 */
export const waitAtAge = (ageMillis: number): Duration.Duration => {
  if (ageMillis < 60_000) return Duration.millis(2500)
  return ageMillis < 300_000 ? Duration.seconds(5) : Duration.seconds(10)
}
