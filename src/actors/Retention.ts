import { Duration, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { LogRetention } from "../services/LogRetention.ts"

/** Days change slowly; a run that finds nothing to do is a few look-ups. */
const every = Duration.hours(1)

/** What is kept for a time only, each with its own job: one that fails does not stop the others. */
const jobs = Effect.gen(function* () {
  const log = yield* LogRetention
  return [{ name: "delivery log", run: log.keep }]
})

export const layer = Singleton.make(
  "Retention",
  Effect.flatMap(jobs, (all) =>
    Effect.forEach(
      all,
      ({ name, run }) =>
        Effect.catchCause(run, (cause) => Effect.logWarning(`Retention: ${name} failed`, cause)),
      { discard: true }
    ).pipe(Effect.repeat(Schedule.spaced(every)), Effect.asVoid)
  )
)
