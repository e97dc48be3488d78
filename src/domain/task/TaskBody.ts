import { DateTime, identity } from "effect"
import type { Array as Arr } from "effect"
import type { TaskId } from "../Ids.ts"
import type { Metadata } from "./Metadata.ts"
import type { TaskAction, TaskError, ResultKind, TaskResult, TaskStatus } from "./Task.ts"

/** The columns of a task that clients see, from a `TaskRow` or a row about to be written. */
export interface TaskFacts {
  readonly id: TaskId
  readonly status: TaskStatus
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
  readonly error: TaskError | null
  readonly result: ReadonlyArray<string> | null
  readonly metadata: Metadata | null
}

/** The result array is present only when the task is completed, metadata only when it was sent. */
const shape = <Time>(task: TaskFacts, kind: ResultKind, time: (at: DateTime.Utc) => Time) => ({
  task_info: {
    id: task.id,
    status: task.status,
    created_at: time(task.createdAt),
    updated_at: time(task.updatedAt),
    ...(task.error === null ? undefined : { error: task.error })
  },
  ...(task.status === "completed" && task.result !== null ? { [kind]: task.result } : undefined),
  ...(task.metadata === null ? undefined : { metadata: task.metadata })
})

/** The `payload` of an event. */
export const taskResult = (task: TaskFacts, kind: ResultKind): TaskResult =>
  shape(task, kind, identity)

/** The response of GET as JSON. It equals the `payload`, because one function builds both. */
export const taskBody = (task: TaskFacts, kind: ResultKind): string =>
  JSON.stringify(shape(task, kind, DateTime.formatIso))

const created = (task: TaskFacts, action: TaskAction) => ({
  task_info: {
    id: task.id,
    ...(action === "edit" ? { status: task.status } : {}),
    created_at: DateTime.formatIso(task.createdAt),
    updated_at: DateTime.formatIso(task.updatedAt)
  }
})

/**
 * The body of the 202. It has `status` only on the `/edit` path, and is a list for several tasks.
 * docs/reference/tasks.md#create
 */
export const createdBodyOf = (
  tasks: Arr.NonEmptyReadonlyArray<TaskFacts>,
  action: TaskAction
): string =>
  JSON.stringify(
    tasks.length === 1
      ? created(tasks[0], action)
      : { tasks: tasks.map((task) => created(task, action)) }
  )
