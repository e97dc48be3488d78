import { Context, Duration, Effect, Layer, Option, Queue, Stream } from "effect"
import { retryStore } from "../db/RetryStore.ts"
import type { TaskView } from "../db/TaskRow.ts"
import { taskRecheckSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { isTerminal } from "../domain/Task.ts"
import { TaskChanges } from "./TaskChanges.ts"
import type { Bell } from "./TaskChanges.ts"
import { TaskStore } from "./TaskStore.ts"

/**
 * Follows a task for a client that waits. Moves made in this process are heard at once; those of
 * other processes are seen by looking again each second (ADR 0031).
 */
export class TaskWatch extends Context.Service<
  TaskWatch,
  {
    /** The task once it has ended, or as it stands when the time is over. Contract 2, `Prefer`. */
    readonly untilEnd: (
      task: TaskView,
      atMost: Duration.Duration
    ) => Effect.Effect<TaskView, StoreUnavailable>
    /** The task as it stands, then each move, to the terminal one. Contract 2, event stream. */
    readonly moves: (task: TaskView) => Stream.Stream<TaskView>
  }
>()("gateway/tasks/TaskWatch") {
  static readonly layer = Layer.effect(
    TaskWatch,
    Effect.gen(function* () {
      const changes = yield* TaskChanges
      const tasks = yield* TaskStore

      const look = (task: TaskView) =>
        Effect.map(
          tasks.view(task.id),
          Option.getOrElse(() => task)
        )

      const ended = Effect.fnUntraced(function* (task: TaskView, bell: Bell) {
        let seen = yield* look(task)
        while (!isTerminal(seen.status)) {
          yield* next(bell)
          seen = yield* look(seen)
        }
        return seen
      })

      const untilEnd = Effect.fnUntraced(function* (task: TaskView, atMost: Duration.Duration) {
        const bell = yield* changes.watch(task.id)
        const seen = yield* Effect.timeoutOption(ended(task, bell), atMost)
        return Option.isSome(seen) ? seen.value : yield* look(task)
      }, Effect.scoped)

      const moves = (first: TaskView) =>
        Effect.map(changes.watch(first.id), (bell) =>
          Stream.unfold(first, (last: TaskView) =>
            isTerminal(last.status)
              ? Effect.undefined
              : Effect.map(moved(last, bell), (now) => [steps(last, now), now] as const)
          ).pipe(Stream.flattenIterable, (later) => Stream.concat(Stream.succeed(first), later))
        ).pipe(Stream.unwrap)

      /** Looks until the task stands elsewhere than before; the store may be away for a while. */
      const moved = Effect.fnUntraced(function* (last: TaskView, bell: Bell) {
        let now = yield* retryStore(look(last))
        while (now.status === last.status) {
          yield* next(bell)
          now = yield* retryStore(look(last))
        }
        return now
      })

      return TaskWatch.of({
        untilEnd: (task, atMost) =>
          isTerminal(task.status) ? Effect.succeed(task) : untilEnd(task, atMost),
        moves
      })
    })
  )
}

const next = (bell: Bell) =>
  Effect.timeoutOption(Queue.take(bell), Duration.seconds(taskRecheckSeconds))

/** A task that was pending and has ended may have been processing in between: no move is left out. */
const steps = (last: TaskView, now: TaskView): ReadonlyArray<TaskView> =>
  last.status === "pending" && isTerminal(now.status) && now.startedAt !== null
    ? [{ ...now, ...processing, updatedAt: now.startedAt }, now]
    : [now]

const processing = { status: "processing", result: null, error: null, captured: null } as const
