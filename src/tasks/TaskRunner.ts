import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import { retryStore } from "../db/StoreFailures.ts"
import type { TaskId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { TaskError } from "../domain/Task.ts"
import { Process } from "../process/Process.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { RunningTasks } from "./RunningTasks.ts"
import { taskErrorOf } from "./submission/VendorFailure.ts"
import { VendorWork } from "./submission/VendorWork.ts"
import { TaskCompletion } from "./TaskCompletion.ts"
import { TaskOutput } from "./TaskOutput.ts"
import { TaskStore } from "./TaskStore.ts"
import type { OwnedTask } from "./TaskStore.ts"

/** Runs one task from its stored state to its end. docs/reference/tasks.md#execution */
export class TaskRunner extends Context.Service<
  TaskRunner,
  {
    /**
     * Acquires the task if it has no owner, and runs it to its end. When interrupted (shutdown, shard
     * move) it releases the task, so that the next owner starts at once.
     */
    readonly run: (id: TaskId) => Effect.Effect<void, StoreUnavailable>
    /**
     * Interrupts the run of a task that was ended from outside, and asks the vendor to cancel its job:
     * best effort. docs/reference/tasks.md#cancel
     */
    readonly stop: (id: TaskId) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/TaskRunner") {
  static readonly layer = Layer.effect(
    TaskRunner,
    Effect.gen(function* () {
      const process = yield* Process
      const store = yield* TaskStore
      const notifier = yield* WorkNotifier
      const running = yield* RunningTasks
      const runToEnd = yield* makeRunToEnd
      const work = yield* VendorWork
      return TaskRunner.of({
        run: Effect.fn("TaskRunner.run")((id) =>
          Effect.acquireUseRelease(
            store.acquireRun(id, process.id),
            (owned) =>
              Option.isSome(owned)
                ? Effect.flatMap(
                    running.whileOwned(owned.value, runToEnd(owned.value)),
                    // Nobody needs the job any more
                    (stopped) => (Option.contains(stopped, "Ended") ? work.cancel(id) : Effect.void)
                  )
                : Effect.void,
            (owned, exit) =>
              Option.isSome(owned) && exit._tag === "Failure"
                ? Effect.ignore(
                    Effect.andThen(store.releaseRun(id, owned.value.epoch), notifier.offerTask(id))
                  )
                : Effect.void
          )
        ),
        // A run that stops cancels its job itself; without a run here it is done for it
        stop: Effect.fn("TaskRunner.stop")(function* (id) {
          if (!(yield* running.check(id))) yield* work.cancel(id)
        })
      })
    })
  )
}

class DeadlinePassed extends Schema.TaggedError<DeadlinePassed>()("DeadlinePassed", {}) {}

const makeRunToEnd = Effect.gen(function* () {
  const completion = yield* TaskCompletion
  const output = yield* TaskOutput
  const work = yield* VendorWork

  return Effect.fnUntraced(function* (owned: OwnedTask) {
    const { deadlineAt, task } = owned
    const epoch = Option.some(owned.epoch)
    const fail = (error: TaskError) => retryStore(completion.fail(task, epoch, error))
    const left = DateTime.distance(yield* DateTime.now, deadlineAt)
    const passed = Effect.fail(new DeadlinePassed())
    const persisted = work.resultOf(owned).pipe(
      Effect.flatMap((job) => output.persistResults(task, job)),
      Effect.timeoutOrElse({ duration: left, orElse: () => passed })
    )
    // After its deadline a task submits nothing
    yield* (Duration.isPositive(left) ? persisted : passed).pipe(
      Effect.flatMap(({ captured, urls }) =>
        retryStore(completion.complete(task, epoch, urls, captured))
      ),
      Effect.catchTags({
        DeadlinePassed: () =>
          Effect.flatMap(fail(deadlinePassed), (ended) =>
            ended ? work.cancel(task.id) : Effect.void
          ),
        // Another process owns the task or has ended it: this run only stops
        Fenced: () => Effect.void,
        VendorError: (error) =>
          Effect.logWarning(`Task ${task.id} was failed by ${task.vendor}: ${error.message}`).pipe(
            Effect.annotateLogs({ class: error.class, vendorCode: error.vendorCode ?? null }),
            Effect.annotateLogs({ requestId: error.requestId ?? null }),
            Effect.andThen(fail(taskErrorOf(error)))
          )
      }),
      Effect.catchDefect((defect) =>
        Effect.logError(`Task ${task.id} failed inside the service`, defect).pipe(
          Effect.andThen(fail(internalError))
        )
      )
    )
  })
})

/** docs/reference/errors.md#task-error-codes */
const deadlinePassed: TaskError = {
  code: 4005,
  title: "Deadline Passed",
  detail: "The task did not end before its deadline"
}

const internalError: TaskError = {
  code: 3005,
  title: "Internal Error",
  detail: "The service failed while running this task"
}
