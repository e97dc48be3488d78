import { Context, Layer } from "effect"
import type { TaskId } from "../domain/Ids.ts"
import { KeyedSignal } from "../process/KeyedSignal.ts"

/** Notifies requests that wait for a task of its moves. Moves made by other processes are not notified. */
export class TaskChanges extends Context.Service<TaskChanges, KeyedSignal<TaskId>>()(
  "gateway/tasks/TaskChanges"
) {
  static readonly layer = Layer.sync(TaskChanges, () => new KeyedSignal<TaskId>())
}
