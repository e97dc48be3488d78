import { DateTime } from "effect"
import type { TaskId } from "../domain/Ids.ts"
import type { TaskError, ResultKind, TaskResult, TaskStatus } from "../domain/Task.ts"

/** What a view needs of a task: a `TaskRow`, or what is to become one. */
export interface TaskFacts {
  readonly id: TaskId
  readonly status: TaskStatus
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
  readonly error: TaskError | null
  readonly result: ReadonlyArray<string> | null
}

/**
 * What GET answers and what `payload` of the event is: one function, so that they are equal.
 * The result array is there when the task is completed, and only then. Spec, Task result.
 */
export const taskResult = (task: TaskFacts, kind: ResultKind): TaskResult => ({
  task_info: {
    id: task.id,
    status: task.status,
    created_at: task.createdAt,
    updated_at: task.updatedAt,
    ...(task.error === null ? {} : { error: task.error })
  },
  ...(task.status === "completed" && task.result !== null ? { [kind]: task.result } : {})
})

/**
 * The body of the 202. `status` stands in it on the `/edit` path alone (spec, Image edit; contract 1).
 */
export const createdBody = (task: TaskFacts, action: "generation" | "edit"): string =>
  JSON.stringify({
    task_info: {
      id: task.id,
      ...(action === "edit" ? { status: task.status } : {}),
      created_at: DateTime.formatIso(task.createdAt),
      updated_at: DateTime.formatIso(task.updatedAt)
    }
  })
