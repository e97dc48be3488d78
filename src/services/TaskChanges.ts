import { Context, Effect, Layer, Queue, Stream } from "effect"
import type { TaskId } from "../domain/Ids.ts"

/** Tells within this process which task has just moved, for whoever waits for it. */
export class TaskChanges extends Context.Service<
  TaskChanges,
  {
    readonly publish: (id: TaskId) => Effect.Effect<void>
    /** Moves of one task from now on. Volatile: a waiter also looks again by itself. */
    readonly of: (id: TaskId) => Stream.Stream<TaskId>
  }
>()("gateway/services/TaskChanges") {
  /** Waiters are kept by task, so that a move costs its own waiters only. */
  static readonly layer = Layer.sync(TaskChanges, () => {
    const waiters = new Map<TaskId, Set<Queue.Queue<TaskId>>>()

    const subscribe = (id: TaskId) =>
      Effect.acquireRelease(
        Effect.map(Queue.sliding<TaskId>(1), (queue) => {
          const known = waiters.get(id) ?? new Set()
          waiters.set(id, known.add(queue))
          return queue
        }),
        (queue) =>
          Effect.sync(() => {
            const known = waiters.get(id)
            known?.delete(queue)
            if (known?.size === 0) waiters.delete(id)
          })
      )

    return TaskChanges.of({
      publish: (id) =>
        Effect.forEach(waiters.get(id) ?? [], (queue) => Queue.offer(queue, id), { discard: true }),
      of: (id) => Stream.unwrap(Effect.map(subscribe(id), Stream.fromQueue))
    })
  })
}
