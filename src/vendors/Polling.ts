import { Duration, Effect, Schedule } from "effect"
import type { Progress } from "./VendorClient.ts"

/** Spec, polling guidance: every 2 to 3 seconds. A vendor may ask for more, or a test for less. */
const pollAtMost = Duration.seconds(60)

/**
 * The wait before the next poll of a job of this age: 2.5 seconds at first (spec, polling guidance),
 * slower for long jobs.
 */
export const waitAtAge = (ageMillis: number): Duration.Duration => {
  if (ageMillis < 60_000) return Duration.millis(2500)
  return ageMillis < 300_000 ? Duration.seconds(5) : Duration.seconds(10)
}

/** Asks again as long as the job runs, each time after the wait that the vendor named. */
export const vendorPolling = Schedule.forever.pipe(
  Schedule.setInputType<Progress>(),
  Schedule.while(({ input }) => Effect.succeed(input._tag === "Running")),
  Schedule.passthrough,
  Schedule.addDelay(({ input }) =>
    Effect.succeed(
      input._tag === "Running" ? Duration.min(input.pollAfter, pollAtMost) : Duration.zero
    )
  )
)
