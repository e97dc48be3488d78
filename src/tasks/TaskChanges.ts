import { Context, Effect, Layer, Schema } from "effect"
import { TaskId } from "../domain/Ids.ts"
import { Hints } from "../process/signals/Hints.ts"
import { KeyedSignal } from "../process/signals/KeyedSignal.ts"

/** Notifies requests that wait for a task of its changes of state in any process. ADR 0178. */
export class TaskChanges extends Context.Service<
  TaskChanges,
  Pick<KeyedSignal<TaskId>, "subscribe" | "size"> & {
    /** Notifies this process at once and the others soon. */
    readonly notify: (id: TaskId) => Effect.Effect<void>
  }
>()("gateway/tasks/TaskChanges") {
  static readonly layer = Layer.effect(
    TaskChanges,
    Effect.map(Hints, ({ publishUnsafe, subscribe }) => {
      const signals = new KeyedSignal<TaskId>()
      subscribe("task", (id) => {
        if (isTaskId(id)) signals.notifyUnsafe(id)
      })
      return TaskChanges.of({
        get size() {
          return signals.size
        },
        subscribe: (id) => signals.subscribe(id),
        notify: (id) =>
          Effect.sync(() => {
            signals.notifyUnsafe(id)
            publishUnsafe("task", id)
          })
      })
    })
  )
}

const isTaskId = Schema.is(TaskId)
