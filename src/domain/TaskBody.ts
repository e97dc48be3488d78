import { DateTime, identity } from "effect"
import type { TaskId } from "./Ids.ts"
import type { TaskError, ResultKind, TaskResult, TaskStatus } from "./Task.ts"

/** What a view needs of a task: a `TaskRow`, or what is to become one. */
export interface TaskFacts {
  readonly id: TaskId
  readonly status: TaskStatus
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
  readonly error: TaskError | null
  readonly result: ReadonlyArray<string> | null
}

/** The one shape of a task's answer. The result array is there when the task is completed, and only then. */
const shape = <Time>(task: TaskFacts, kind: ResultKind, time: (at: DateTime.Utc) => Time) => ({
  task_info: {
    id: task.id,
    status: task.status,
    created_at: time(task.createdAt),
    updated_at: time(task.updatedAt),
    ...(task.error === null ? undefined : { error: task.error })
  },
  ...(task.status === "completed" && task.result !== null ? { [kind]: task.result } : undefined)
})

/** What `payload` of the event is. Spec, Task result. */
export const taskResult = (task: TaskFacts, kind: ResultKind): TaskResult =>
  shape(task, kind, identity)

/** What GET answers: the same, made by the same function, as JSON. */
export const taskBody = (task: TaskFacts, kind: ResultKind): string =>
  JSON.stringify(shape(task, kind, DateTime.formatIso))

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
