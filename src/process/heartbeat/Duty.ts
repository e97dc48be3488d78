import { Effect, Layer } from "effect"
import { warnOnce } from "../../domain/WarnOnce.ts"
import { Process } from "./Process.ts"
import type { DutyInterval } from "./ProcessStore.ts"

/**
 * Runs an effect each time this process takes the duty. In each interval one process takes it, with one of its
 * heartbeats. Failed runs are logged once until one succeeds. ADR 0202.
 */
export const layer = <E, R>(duty: DutyInterval, run: Effect.Effect<unknown, E, R>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const turn = yield* (yield* Process).duty(duty)
      yield* Effect.andThen(turn, Effect.logDebug(`The duty "${duty.name}" begins`)).pipe(
        Effect.andThen(run),
        warnOnce(`The duty "${duty.name}" failed`),
        Effect.forever,
        Effect.forkScoped
      )
    })
  )
