import { Duration, Effect, Layer, Schedule } from "effect"
import { ownershipReconcileSeconds } from "../../domain/limits/Limits.ts"
import { warnOnce } from "../../domain/WarnOnce.ts"
import { RunningTasks } from "./RunningTasks.ts"

/** Runs the comparison at an interval: the tasks that this process runs with those that it owns. ADR 0020. */
export const layer = Layer.effectDiscard(
  Effect.flatMap(RunningTasks, ({ reconcile }) =>
    reconcile.pipe(
      warnOnce("Reconciling owned tasks failed"),
      Effect.repeat(Schedule.spaced(Duration.seconds(ownershipReconcileSeconds))),
      Effect.forkScoped
    )
  )
)
