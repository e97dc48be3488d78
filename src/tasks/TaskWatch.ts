import { Context, Duration, Effect, Layer, Option, Stream } from "effect"
import type { Scope } from "effect"
import { Batcher } from "../db/Batcher.ts"
import { retryStore } from "../db/StoreFailures.ts"
import type { TaskView } from "../db/TaskRow.ts"
import type { TaskId } from "../domain/Ids.ts"
import { taskRecheckSeconds } from "../domain/limits/Limits.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { isTerminal } from "../domain/task/Task.ts"
import { Drain } from "../process/Drain.ts"
import { CurrentOpenResponses } from "../process/OpenResponses.ts"
import type { Signal } from "../process/signals/KeyedSignal.ts"
import { TaskChanges } from "./TaskChanges.ts"
import { TaskStore } from "./TaskStore.ts"

/** Fails once the waiting caller may no longer see the task, because the key, session or user has ended. */
export type MayStill = Effect.Effect<unknown, Problem | StoreUnavailable>

/**
 * Follows a task for a waiting client. Changes made by this process are reported at once, and those of other processes
 * soon after. Rereading the task every second covers lost hints. ADR 0178.
 */
export class TaskWatch extends Context.Service<
  TaskWatch,
  {
    /**
     * The task once it has ended, or its current state after `atMost` or when the process drains. Fails when
     * `mayStill` does, or with 1201 when the user has too many responses open. docs/reference/tasks.md#waiting
     */
    readonly untilEnd: (
      task: TaskView,
      atMost: Duration.Duration,
      mayStill: MayStill
    ) => Effect.Effect<TaskView, Problem | StoreUnavailable>
    /**
     * The task now and after each change of state until it ends. The stream also ends when `mayStill` fails. Fails with
     * 1201 when the user has too many responses open. The scope is that of the response.
     * docs/reference/tasks.md#event-stream
     */
    readonly moves: (
      task: TaskView,
      mayStill: MayStill
    ) => Effect.Effect<Stream.Stream<TaskView>, Problem, Scope.Scope>
  }
>()("gateway/tasks/TaskWatch") {
  static readonly layer = Layer.effect(
    TaskWatch,
    Effect.gen(function* () {
      const changes = yield* TaskChanges
      const tasks = yield* TaskStore
      const drain = yield* Drain
      const open = yield* CurrentOpenResponses

      const reads = yield* makeReads(tasks)
      /**
       * Reads the task, then checks that the caller may still see it, so that nothing is shown once access has ended.
       */
      const readAllowed = (task: TaskView, mayStill: MayStill) =>
        Effect.flatMap(reads.call(task.id), (seen) => Effect.as(mayStill, seen ?? task))

      const ended = Effect.fnUntraced(function* (
        task: TaskView,
        mayStill: MayStill,
        signal: Signal
      ) {
        let seen = yield* readAllowed(task, mayStill)
        while (!isTerminal(seen.status)) {
          yield* next(signal)
          seen = yield* readAllowed(seen, mayStill)
        }
        return seen
      })

      const untilEnd = Effect.fnUntraced(function* (
        task: TaskView,
        atMost: Duration.Duration,
        mayStill: MayStill
      ) {
        yield* open.hold(task.userId)
        const signal = yield* changes.subscribe(task.id)
        const seen = yield* Effect.timeoutOption(ended(task, mayStill, signal), atMost).pipe(
          Effect.raceFirst(Effect.as(drain.begun, Option.none()))
        )
        return Option.isSome(seen) ? seen.value : yield* readAllowed(task, mayStill)
      }, Effect.scoped)

      const moves = (first: TaskView, mayStill: MayStill) =>
        Effect.map(changes.subscribe(first.id), (signal) =>
          Stream.unfold(first, (last: TaskView) =>
            isTerminal(last.status)
              ? Effect.undefined
              : Effect.map(moved(last, mayStill, signal), (now) =>
                  now === undefined ? undefined : ([steps(last, now), now] as const)
                )
          ).pipe(Stream.flattenIterable, (later) => Stream.concat(Stream.succeed(first), later))
        ).pipe(Stream.unwrap)

      /** `undefined`: the caller may no longer see the task. Waits while the store is unavailable. */
      const readRetrying = (task: TaskView, mayStill: MayStill) =>
        retryStore(Effect.catchTag(readAllowed(task, mayStill), "Problem", () => Effect.undefined))

      /** Rereads the task until its status changes. */
      const moved = Effect.fnUntraced(function* (
        last: TaskView,
        mayStill: MayStill,
        signal: Signal
      ) {
        let now = yield* readRetrying(last, mayStill)
        while (now?.status === last.status) {
          yield* next(signal)
          now = yield* readRetrying(last, mayStill)
        }
        return now
      })

      return TaskWatch.of({
        untilEnd: (task, atMost, mayStill) =>
          isTerminal(task.status) || Duration.isZero(atMost)
            ? Effect.succeed(task)
            : untilEnd(task, atMost, mayStill),
        moves: (task, mayStill) => Effect.as(open.hold(task.userId), moves(task, mayStill))
      })
    })
  )
}

/**
 * Reads for waiting clients share statements, so a thousand clients cost the store little. Batches are small so that
 * resuming their waiters does not delay other work (`bench/hostile.ts`, event streams).
 */
const makeReads = (tasks: TaskStore["Service"]) =>
  Batcher.make({
    run: (ids: ReadonlyArray<TaskId>) =>
      Effect.map(tasks.views(ids), (views) => {
        const byId = new Map(views.map((view) => [view.id, view]))
        return ids.map((id) => byId.get(id))
      }),
    itemsMax: 100,
    runsMax: 1,
    intervalMillis: 20,
    intervalMillisPerItem: 1
  })

const next = (signal: Signal) => signal.wait(Duration.seconds(taskRecheckSeconds))

/**
 * The changes from `last` to `now`. A task that went from pending straight to an end state gets the `processing` step
 * that was missed.
 */
const steps = (last: TaskView, now: TaskView): ReadonlyArray<TaskView> =>
  last.status === "pending" && isTerminal(now.status) && now.startedAt !== null
    ? [{ ...now, ...processing, updatedAt: now.startedAt }, now]
    : [now]

const processing = { status: "processing", result: null, error: null, captured: null } as const
