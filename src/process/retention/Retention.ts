import { Effect, Layer } from "effect"
import { warnOnce } from "../../domain/WarnOnce.ts"
import * as Duty from "../heartbeat/Duty.ts"

/** Removes rows or files that are past their retention. */
export interface RetentionJob<E = unknown> {
  /** The kind of data that is removed, for the log. */
  readonly name: string
  readonly run: Effect.Effect<unknown, E>
}

/**
 * Runs all jobs in one process, when the first process starts and after every full hour. A failed job does not stop the
 * others.
 */
export const layer = <R>(jobs: Effect.Effect<ReadonlyArray<RetentionJob>, never, R>) =>
  Layer.unwrap(
    Effect.map(jobs, (all) =>
      Duty.layer(
        { name: "retention", seconds: 3600 },
        Effect.all(
          all.map(({ name, run }) => warnOnce(`Retention: ${name} failed`)(run)),
          { discard: true }
        )
      )
    )
  )
