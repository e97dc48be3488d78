import { Context, Layer } from "effect"
import type { TaskId } from "../../domain/Ids.ts"
import { stepsPerQueueMax } from "../../domain/limits/Limits.ts"
import { DueLoop } from "../../process/DueLoop.ts"
import type { OwnedTask } from "./OwnedTask.ts"

interface Scheduler {
  readonly begin: (owned: OwnedTask) => void
  readonly stop: (id: TaskId) => void
}

/**
 * The tasks that this process has in hand, by queue, and the requests to its `TaskScheduler`. Kept in memory only,
 * because the task rows contain the same information. Each request is one synchronous step, so any context may make it.
 */
export class TaskInbox extends Context.Service<
  TaskInbox,
  {
    /** Adds a task that was accepted with this process as its owner. It is in hand from now on. */
    readonly start: (owned: OwnedTask) => void
    /** Stops the step of a task that was ended from outside. */
    readonly stop: (id: TaskId) => void
    /** Announces that a task is due at this time (Unix milliseconds; default now). */
    readonly wake: DueLoop["wake"]
    /** The loop of the scheduler. */
    readonly run: DueLoop["run"]
    /** Connects the scheduler, and first passes on the requests made before. */
    readonly attach: (scheduler: Scheduler) => void
    /** How many more tasks of this queue the process may take in hand. */
    readonly capacity: (queue: string) => number
    readonly count: (queue: string, change: 1 | -1) => void
    /**
     * Whether a new task is taken in hand at once: there is capacity, and no older task is waiting for it. A task that
     * is not admitted waits in the store, and so do later ones until `setBehind(queue, false)`.
     */
    readonly admits: (queue: string) => boolean
    /** Whether due tasks of this queue wait in the store for capacity of this process. */
    readonly setBehind: (queue: string, isBehind: boolean) => void
  }
>()("gateway/tasks/TaskInbox") {
  static readonly layer = Layer.sync(TaskInbox, () => {
    const { run, wake } = new DueLoop()
    const asked: Array<(scheduler: Scheduler) => void> = []
    let attached: Scheduler | undefined
    const ask = (request: (scheduler: Scheduler) => void) => {
      if (attached === undefined) asked.push(request)
      else request(attached)
    }
    const inHand = new Map<string, number>()
    const capacity = (queue: string) => stepsPerQueueMax - (inHand.get(queue) ?? 0)
    const count = (queue: string, change: 1 | -1) => {
      const next = (inHand.get(queue) ?? 0) + change
      if (next === 0) inHand.delete(queue)
      else inHand.set(queue, next)
    }
    const behind = new Set<string>()
    return {
      start: (owned) => {
        count(owned.queue, 1)
        ask(({ begin }) => begin(owned))
      },
      stop: (id) => ask(({ stop }) => stop(id)),
      wake,
      run,
      capacity,
      count,
      admits: (queue) => {
        if (capacity(queue) <= 0) behind.add(queue)
        return !behind.has(queue)
      },
      setBehind: (queue, isBehind) => {
        if (isBehind) behind.add(queue)
        else behind.delete(queue)
      },
      attach: (scheduler) => {
        attached = scheduler
        for (const request of asked.splice(0)) request(scheduler)
      }
    }
  })
}
