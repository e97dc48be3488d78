import { Context, Effect, Layer, Queue } from "effect"
import type { Scope } from "effect"
import type { TaskId } from "../domain/Ids.ts"

/** Rings once for any number of moves since it was last heard. */
export type Bell = Queue.Dequeue<TaskId>

/** Tells within this process which task has just moved, for requests that wait for it. */
export class TaskChanges extends Context.Service<
  TaskChanges,
  {
    readonly publish: (id: TaskId) => Effect.Effect<void>
    /** How many tasks are being watched now. */
    readonly watched: Effect.Effect<number>
    /**
     * Hears moves of one task from now on, until the scope closes. Volatile, and moves made by
     * other processes are not heard: a waiter also looks again by itself.
     */
    readonly watch: (id: TaskId) => Effect.Effect<Bell, never, Scope.Scope>
  }
>()("gateway/tasks/TaskChanges") {
  /** By task, so that a move costs what its own waiters cost, however many wait for other tasks. */
  static readonly layer = Layer.sync(TaskChanges, () => {
    const bells = new Map<TaskId, Set<Queue.Queue<TaskId>>>()

    const hang = Effect.fnUntraced(function* (id: TaskId) {
      const bell = yield* Queue.sliding<TaskId>(1)
      const others = bells.get(id)
      if (others === undefined) bells.set(id, new Set([bell]))
      else others.add(bell)
      return bell
    })

    const unsubscribe = (id: TaskId, bell: Queue.Queue<TaskId>) =>
      Effect.sync(() => {
        const all = bells.get(id)
        all?.delete(bell)
        if (all?.size === 0) bells.delete(id)
      })

    return TaskChanges.of({
      publish: (id) =>
        Effect.sync(() => {
          for (const bell of bells.get(id) ?? []) Queue.offerUnsafe(bell, id)
        }),
      watched: Effect.sync(() => bells.size),
      watch: (id) => Effect.acquireRelease(hang(id), (bell) => unsubscribe(id, bell))
    })
  })
}
