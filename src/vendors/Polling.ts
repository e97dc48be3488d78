import { Duration, Effect, Schedule } from "effect"
import type { Progress } from "./VendorClient.ts"

/** Spec, polling guidance: every 2 to 3 seconds. A vendor may ask for more, or a test for less. */
const pollAtMost = Duration.seconds(60)

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
