import { DateTime, Effect } from "effect"
import type { Duration } from "effect"
import { Singleton } from "effect/cluster"
import { Artifacts } from "../artifacts/Artifacts.ts"
import { Callbacks } from "./callbacks/Callbacks.ts"
import { LogRetention } from "../process/LogRetention.ts"

/** What is kept for a time only, each with its own job: one that fails does not stop the others. */
const jobs = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  const callbacks = yield* Callbacks
  const log = yield* LogRetention
  return [
    { name: "delivery log", run: log.keep },
    { name: "expired artifacts", run: artifacts.sweep },
    { name: "old callbacks", run: callbacks.forget }
  ]
})

/** From now to the next full hour: the same instants in every process, without jitter. */
const toNextHour = Effect.map(DateTime.now, (now): Duration.Duration => {
  const next = DateTime.add(DateTime.startOf(now, "hour"), { hours: 1 })
  return DateTime.distance(now, next)
})

/** Runs all jobs at the start and then at every full hour. */
export const layer = Singleton.make(
  "Retention",
  Effect.flatMap(jobs, (all) => {
    const runAll = Effect.forEach(
      all,
      ({ name, run }) =>
        Effect.catchCause(run, (cause) => Effect.logWarning(`Retention: ${name} failed`, cause)),
      { discard: true }
    )
    return Effect.forever(
      Effect.andThen(
        runAll,
        Effect.flatMap(toNextHour, (wait) => Effect.sleep(wait))
      )
    )
  })
)
