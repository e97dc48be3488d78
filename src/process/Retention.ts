import { DateTime, Effect, Layer } from "effect"
import type { Duration } from "effect"

/** Removes rows or files at the end of their retention time. */
export interface RetentionJob<E = unknown> {
  /** What it removes, for the log. */
  readonly name: string
  readonly run: Effect.Effect<unknown, E>
}

/** From now to the next full hour. Every process runs at the same instants, without jitter. */
const toNextHour = Effect.map(DateTime.now, (now): Duration.Duration => {
  const next = DateTime.add(DateTime.startOf(now, "hour"), { hours: 1 })
  return DateTime.distance(now, next)
})

/** Runs all jobs at the start and at every full hour. A job that fails does not stop the others. */
export const layer = <R>(jobs: Effect.Effect<ReadonlyArray<RetentionJob>, never, R>) =>
  Layer.effectDiscard(
    Effect.forkScoped(
      Effect.flatMap(jobs, (all) => {
        const runAll = Effect.forEach(
          all,
          ({ name, run }) =>
            Effect.catchCause(run, (cause) =>
              Effect.logWarning(`Retention: ${name} failed`, cause)
            ),
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
  )
