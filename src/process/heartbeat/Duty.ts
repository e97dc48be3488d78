import { Effect, Layer } from "effect"
import { Process } from "./Process.ts"
import type { DutyInterval } from "./ProcessStore.ts"

/**
 * Runs an effect each time this process takes the duty. In each interval one process takes it, with one of its
 * heartbeats. A failed run is logged. ADR 0202.
 */
export const layer = <E, R>(duty: DutyInterval, run: Effect.Effect<unknown, E, R>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const turn = yield* (yield* Process).duty(duty)
      yield* Effect.andThen(turn, Effect.logDebug(`The duty "${duty.name}" begins`)).pipe(
        Effect.andThen(run),
        Effect.catchCause((cause) => Effect.logWarning(`The duty "${duty.name}" failed`, cause)),
        Effect.forever,
        Effect.forkScoped
      )
    })
  )
