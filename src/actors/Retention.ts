import { DateTime, Effect } from "effect"
import type { Duration } from "effect"
import { Singleton } from "effect/cluster"
import { Artifacts } from "../services/Artifacts.ts"

/** One thing to forget; each runs at every full hour, and a failed one alone is tried an hour later. */
interface Job {
  readonly name: string
  readonly run: Effect.Effect<void, unknown>
}

/** All that is forgotten in time. Contract 3 and 8. */
const jobs = Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<Job>, never, Artifacts> {
  const artifacts = yield* Artifacts
  return [{ name: "Expired artifacts", run: artifacts.sweep }]
})

/** From now to the next full hour: the same instants in every process, without jitter. */
const toNextHour = Effect.map(DateTime.now, (now): Duration.Duration => {
  const next = DateTime.add(DateTime.startOf(now, "hour"), { hours: 1 })
  return DateTime.distance(now, next)
})

/** Runs all jobs at the start and then at every full hour. */
export const layer = Singleton.make(
  "Retention",
  Effect.gen(function* () {
    const all = yield* jobs
    const runAll = Effect.forEach(
      all,
      ({ name, run }) =>
        Effect.catchCause(run, (cause) => Effect.logWarning(`${name} were not removed`, cause)),
      { discard: true }
    )
    return yield* Effect.forever(
      Effect.andThen(
        runAll,
        Effect.flatMap(toNextHour, (wait) => Effect.sleep(wait))
      )
    )
  })
)
