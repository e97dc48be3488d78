import { Duration, Effect, Layer, Schedule } from "effect"
import { ownershipReconcileSeconds } from "../domain/Limits.ts"
import { RunningTasks } from "./RunningTasks.ts"

/** Each process holds what it runs against what the store says that it owns. ADR 0020. */
export const layer = Layer.effectDiscard(
  Effect.flatMap(RunningTasks, ({ audit }) =>
    audit.pipe(
      Effect.catchCause((cause) => Effect.logWarning("An audit failed", cause)),
      Effect.repeat(Schedule.spaced(Duration.seconds(ownershipReconcileSeconds))),
      Effect.forkScoped
    )
  )
)
