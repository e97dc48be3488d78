import { Context, Duration, Effect, Latch, Layer } from "effect"
import type { TaskId } from "../domain/Ids.ts"
import { stepsPerQueueMax } from "../domain/Limits.ts"
import type { OwnedTask } from "./TaskStore.ts"

/**
 * The tasks that this process has in hand, by queue, and what its `TaskScheduler` is asked to do: volatile,
 * because the rows of the tasks say the same. To ask is one synchronous step, in any context.
 */
export class TaskInbox extends Context.Service<
  TaskInbox,
  {
    /** A task that was accepted with this process as its owner. It is in hand from now on. */
    readonly start: (owned: OwnedTask) => void
    /** A task that was ended from outside. */
    readonly stop: (id: TaskId) => void
    /** A task falls due then: at once without a time, which is in Unix milliseconds. */
    readonly wake: (atMillis?: number) => void
    readonly take: () => {
      readonly starts: ReadonlyArray<OwnedTask>
      readonly stops: ReadonlyArray<TaskId>
    }
    /** How many more tasks of this queue this process takes in hand. */
    readonly room: (queue: string) => number
    readonly count: (queue: string, change: 1 | -1) => void
    /** Waits until then, or until something comes before. */
    readonly sleepUntil: (atMillis: number, nowMillis: number) => Effect.Effect<void>
  }
>()("gateway/tasks/TaskInbox") {
  static readonly layer = Layer.sync(TaskInbox, () => {
    const news = Latch.makeUnsafe()
    let starts: Array<OwnedTask> = []
    let stops: Array<TaskId> = []
    /** When the scheduler looks next; it sleeps until then at most. */
    let looksAt = Number.POSITIVE_INFINITY
    let isAsleep = false
    const inHand = new Map<string, number>()
    const room = (queue: string) => stepsPerQueueMax - (inHand.get(queue) ?? 0)
    const count = (queue: string, change: 1 | -1) => {
      const next = (inHand.get(queue) ?? 0) + change
      if (next === 0) inHand.delete(queue)
      else inHand.set(queue, next)
    }
    return {
      start: (owned) => {
        starts.push(owned)
        count(owned.queue, 1)
        news.openUnsafe()
      },
      stop: (id) => {
        stops.push(id)
        news.openUnsafe()
      },
      wake: (atMillis = Number.NEGATIVE_INFINITY) => {
        if (atMillis >= looksAt) return
        looksAt = atMillis
        if (isAsleep || atMillis === Number.NEGATIVE_INFINITY) news.openUnsafe()
      },
      room,
      count,
      take: () => {
        news.closeUnsafe()
        looksAt = Number.POSITIVE_INFINITY
        const taken = { starts, stops }
        starts = []
        stops = []
        return taken
      },
      sleepUntil: (atMillis, nowMillis) =>
        Effect.suspend(() => {
          looksAt = Math.min(looksAt, atMillis)
          isAsleep = true
          const wait = Duration.millis(Math.max(0, looksAt - nowMillis))
          return Effect.timeoutOption(news.await, wait)
        }).pipe(
          Effect.ensuring(
            Effect.sync(() => {
              isAsleep = false
            })
          ),
          Effect.asVoid
        )
    }
  })
}
