import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import { retryStore } from "../db/StoreFailures.ts"
import type { TaskId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { TaskError } from "../domain/Task.ts"
import { Process } from "../process/Process.ts"
import { RunningTasks } from "./RunningTasks.ts"
import { taskErrorOf } from "./submission/VendorFailure.ts"
import { VendorWork } from "./submission/VendorWork.ts"
import { TaskCompletion } from "./TaskCompletion.ts"
import { TaskOutput } from "./TaskOutput.ts"
import { TaskStore } from "./TaskStore.ts"
import type { OwnedTask } from "./TaskStore.ts"

/** Runs one task from wherever it stands to its end. Architecture, rules 2 and 4. */
export class TaskRunner extends Context.Service<
  TaskRunner,
  {
    /**
     * Takes the task if nobody owns it, and brings it to its end. Interrupted (shutdown, shard
     * move), it gives the task back, so that the next owner starts at once.
     */
    readonly run: (id: TaskId) => Effect.Effect<void, StoreUnavailable>
    /**
     * Stops at once what this process does for a task that was ended from outside, and asks the
     * vendor to cancel its job: best effort, contract 2.
     */
    readonly stop: (id: TaskId) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/TaskRunner") {
  static readonly layer = Layer.effect(
    TaskRunner,
    Effect.gen(function* () {
      const process = yield* Process
      const store = yield* TaskStore
      const running = yield* RunningTasks
      const bringToEnd = yield* makeBringToEnd
      const work = yield* VendorWork
      return TaskRunner.of({
        run: Effect.fn("TaskRunner.run")((id) =>
          Effect.acquireUseRelease(
            store.own(id, process.id),
            (owned) =>
              Option.isSome(owned)
                ? Effect.flatMap(
                    running.whileOwned(owned.value, bringToEnd(owned.value)),
                    // The job is of no use any more, and the vendor is told
                    (loss) => (Option.contains(loss, "Ended") ? work.cancel(id) : Effect.void)
                  )
                : Effect.void,
            (owned, exit) =>
              Option.isSome(owned) && exit._tag === "Failure"
                ? Effect.ignore(store.disown(id, owned.value.epoch))
                : Effect.void
          )
        ),
        // A run tells the vendor itself; one that is nowhere under way cannot
        stop: Effect.fn("TaskRunner.stop")(function* (id) {
          if (!(yield* running.check(id))) yield* work.cancel(id)
        })
      })
    })
  )
}

class DeadlinePassed extends Schema.TaggedError<DeadlinePassed>()("DeadlinePassed", {}) {}

const makeBringToEnd = Effect.gen(function* () {
  const ending = yield* TaskCompletion
  const output = yield* TaskOutput
  const work = yield* VendorWork

  return Effect.fnUntraced(function* (owned: OwnedTask) {
    const { deadlineAt, task } = owned
    const epoch = Option.some(owned.epoch)
    const fail = (error: TaskError) => retryStore(ending.fail(task, epoch, error))
    const left = DateTime.distance(yield* DateTime.now, deadlineAt)
    const passed = Effect.fail(new DeadlinePassed())
    const kept = work.resultOf(owned).pipe(
      Effect.flatMap((result) => output.keep(task, result)),
      Effect.timeoutOrElse({ duration: left, orElse: () => passed })
    )
    // What nobody may have any more is not bought
    yield* (Duration.isPositive(left) ? kept : passed).pipe(
      Effect.flatMap(({ captured, urls }) =>
        retryStore(ending.complete(task, epoch, urls, captured))
      ),
      Effect.catchTags({
        DeadlinePassed: () =>
          Effect.flatMap(fail(deadlinePassed), (ended) =>
            ended ? work.cancel(task.id) : Effect.void
          ),
        // Somebody else owns or has ended the task: stop without a word
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

/** Contract 4, 4005. */
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
