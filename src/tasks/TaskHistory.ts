import { Context, Effect, Layer, Option } from "effect"
import type { TaskId, UserId } from "../domain/Ids.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { TaskHistoryStore } from "./TaskHistoryStore.ts"
import type { TaskFilter, TaskHistory as History, TaskSummary } from "./TaskHistoryStore.ts"

export type {
  AttemptRow,
  DeliveryAttemptRow,
  TaskFilter,
  TaskHistory as History,
  TaskSummary
} from "./TaskHistoryStore.ts"

/** What a user sees of their tasks across all vendors and models. Contract 3, `/tasks`. */
export class TaskHistory extends Context.Service<
  TaskHistory,
  {
    /** Newest first. */
    readonly list: (
      userId: UserId,
      filter: TaskFilter
    ) => Effect.Effect<ReadonlyArray<TaskSummary>, StoreUnavailable>
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: TaskId) => Effect.Effect<History, Problem | StoreUnavailable>
  }
>()("gateway/tasks/TaskHistory") {
  static readonly layer = Layer.effect(
    TaskHistory,
    Effect.map(TaskHistoryStore, (store) =>
      TaskHistory.of({
        list: store.list,
        get: Effect.fn("TaskHistory.get")(function* (userId, id) {
          const found = yield* store.history(userId, id)
          if (Option.isNone(found)) return yield* problem(2005, `There is no task ${id}`)
          return found.value
        })
      })
    )
  )
}
