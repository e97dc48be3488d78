import { Context, DateTime, Effect, Layer, Option } from "effect"
import type { Duration } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { firstTaskId } from "../../domain/Ids.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { retentionBatchesMax, retentionTasksMax } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { TaskRetentionStore } from "./TaskRetentionStore.ts"

/** Enforces `TASK_RETENTION` and `BODY_RETENTION`. docs/reference/privacy.md#retention */
export class TaskRetention extends Context.Service<
  TaskRetention,
  {
    /** Runs one bounded round of both; the next call continues. */
    readonly maintain: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/TaskRetention") {
  static readonly layer = Layer.effect(
    TaskRetention,
    Effect.gen(function* () {
      const store = yield* TaskRetentionStore
      const { retention } = yield* AppConfig
      const older = (
        kept: Option.Option<Duration.Duration>,
        remove: (before: TaskId, limit: number) => Effect.Effect<number, StoreUnavailable>
      ) =>
        Option.match(kept, {
          onNone: () => Effect.succeed(0),
          onSome: (duration) =>
            Effect.flatMap(DateTime.now, (now) => {
              const since = DateTime.subtractDuration(now, duration)
              const before = firstTaskId(Math.max(0, DateTime.toEpochMillis(since)))
              return remove(before, retentionTasksMax)
            }).pipe(
              Effect.repeat({
                while: (removed) => removed >= retentionTasksMax,
                times: retentionBatchesMax
              })
            )
        })
      return TaskRetention.of({
        maintain: Effect.andThen(
          older(retention.tasks, store.deleteBefore),
          Effect.asVoid(older(retention.bodies, store.scrubBefore))
        )
      })
    })
  )
}
