import { Context, Effect, Layer, PubSub, Stream } from "effect"
import type { TaskId } from "../domain/Ids.ts"

/** Tells within this process which task has just moved, for requests that wait for it. */
export class TaskChanges extends Context.Service<
  TaskChanges,
  {
    readonly publish: (id: TaskId) => Effect.Effect<void>
    /** Moves of one task from now on. Volatile: a waiter also looks again by itself. */
    readonly of: (id: TaskId) => Stream.Stream<TaskId>
  }
>()("gateway/services/TaskChanges") {
  static readonly layer = Layer.effect(
    TaskChanges,
    Effect.gen(function* () {
      const moves = yield* PubSub.sliding<TaskId>(4096)
      return TaskChanges.of({
        publish: (id) => Effect.asVoid(PubSub.publish(moves, id)),
        of: (id) => Stream.filter(Stream.fromPubSub(moves), (moved) => moved === id)
      })
    })
  )
}
