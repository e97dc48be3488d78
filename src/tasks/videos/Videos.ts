import { Context, DateTime, Effect, Layer, Option } from "effect"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { TaskResults } from "../completion/TaskResults.ts"
import { Router } from "../creation/Router.ts"
import { VideoStore } from "./VideoStore.ts"
import type { VideoPage, VideoRow } from "./VideoStore.ts"

/** A task with its body. */
export type Video = VideoRow

type Failure = Problem | StoreUnavailable

/** A user's videos across all vendors and models. docs/reference/shapes.md#videos */
export class Videos extends Context.Service<
  Videos,
  {
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: TaskId) => Effect.Effect<Video, Failure>
    readonly list: (
      userId: UserId,
      page: VideoPage
    ) => Effect.Effect<ReadonlyArray<Video>, StoreUnavailable>
    /** Cancels the task if it is running, then removes its media. Fails with 2005. */
    readonly delete: (userId: UserId, id: TaskId) => Effect.Effect<void, Failure>
  }
>()("gateway/tasks/Videos") {
  static readonly layer = Layer.effect(
    Videos,
    Effect.gen(function* () {
      const results = yield* TaskResults
      const router = yield* Router
      const store = yield* VideoStore

      const get = Effect.fnUntraced(function* (userId: UserId, id: TaskId) {
        const found = yield* store.find(userId, id)
        if (Option.isNone(found)) return yield* noVideo(id)
        return found.value
      })

      return Videos.of({
        get,
        list: store.list,
        delete: Effect.fn("Videos.delete")(function* (userId, id) {
          const task = yield* get(userId, id)
          if (!isTerminal(task.status)) {
            // The task may have ended in the meantime, which is fine
            yield* Effect.catchIf(
              router.cancel(userId, task, id),
              (error) => error._tag === "Problem" && error.code === 2010,
              () => Effect.void
            )
          }
          // Marked as deleted first, so that media left over after a crash simply expire
          const deleted = yield* store.delete(userId, id, yield* DateTime.now)
          if (Option.isNone(deleted)) return yield* noVideo(id)
          yield* results.remove(deleted.value.result ?? [])
        })
      })
    })
  )
}

export const noVideo = (id: string): Problem =>
  problem(2005, `There is no video ${id.slice(0, 60)}`)
