import { Effect } from "effect"
import * as Duty from "../heartbeat/Duty.ts"

/** Removes rows or files at the end of their retention time. */
export interface RetentionJob<E = unknown> {
  /** The kind of data removed, for the log. */
  readonly name: string
  readonly run: Effect.Effect<unknown, E>
}

/** One process runs all jobs: at the first start, and after every full hour. A job that fails does not stop the others. */
export const layer = <R>(jobs: Effect.Effect<ReadonlyArray<RetentionJob>, never, R>) =>
  Duty.layer(
    { name: "retention", seconds: 3600 },
    Effect.flatMap(
      jobs,
      Effect.forEach(
        ({ name, run }) =>
          Effect.catchCause(run, (cause) => Effect.logWarning(`Retention: ${name} failed`, cause)),
        { discard: true }
      )
    )
  )
