import { Context, Effect, Layer, Option } from "effect"
import type { ScannedPage } from "../../db/ListScan.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Wallet } from "../../wallet/Wallet.ts"
import type { EntryRow } from "../../wallet/Wallet.ts"
import { Deliveries } from "../../webhooks/Deliveries.ts"
import type { TaskDeliveryRow } from "../../webhooks/Deliveries.ts"
import { TaskHistoryStore } from "./TaskHistoryStore.ts"
import type { AttemptRow, PastTask, TaskFilter, TaskSummary } from "./TaskHistoryStore.ts"

export type { AttemptRow, TaskFilter, TaskSummary } from "./TaskHistoryStore.ts"

/** All that happened to one task. */
export interface History {
  readonly task: PastTask
  readonly attempts: ReadonlyArray<AttemptRow>
  readonly entries: ReadonlyArray<EntryRow>
  /** Deliveries joined with their attempts, ordered by both. */
  readonly deliveries: ReadonlyArray<TaskDeliveryRow>
}

/** A user's tasks across all vendors and models. docs/reference/tasks.md#history */
export class TaskHistory extends Context.Service<
  TaskHistory,
  {
    /** Newest first. */
    readonly search: (
      userId: UserId,
      filter: TaskFilter
    ) => Effect.Effect<ScannedPage<TaskSummary>, StoreUnavailable>
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: TaskId) => Effect.Effect<History, Problem | StoreUnavailable>
  }
>()("gateway/tasks/TaskHistory") {
  static readonly layer = Layer.effect(
    TaskHistory,
    Effect.gen(function* () {
      const store = yield* TaskHistoryStore
      const wallet = yield* Wallet
      const deliveries = yield* Deliveries
      return TaskHistory.of({
        search: store.search,
        get: Effect.fn("TaskHistory.get")(function* (userId, id) {
          const task = yield* store.find(userId, id)
          if (Option.isNone(task)) return yield* problem(2005, `There is no task ${id}`)
          return {
            task: task.value,
            attempts: yield* store.attempts(id),
            entries: yield* wallet.entriesOf(userId, id),
            deliveries: yield* deliveries.ofTask(id)
          }
        })
      })
    })
  )
}
