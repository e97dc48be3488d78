import { Context, DateTime, Duration, Effect, Layer, Option, Schema, Tracer } from "effect"
import { retryStore } from "../db/StoreFailures.ts"
import type { TaskRow } from "../db/TaskRow.ts"
import { modelAt } from "../domain/Candidate.ts"
import type { TaskId } from "../domain/Ids.ts"
import type { TaskError } from "../domain/Task.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import type { Owned } from "./OwnedTask.ts"
import { RunningTasks } from "./RunningTasks.ts"
import { Fenced } from "./submission/PaidSubmit.ts"
import { taskErrorOf } from "./submission/VendorFailure.ts"
import { VendorWork } from "./submission/VendorWork.ts"
import { TaskCompletion } from "./TaskCompletion.ts"
import { TaskInbox } from "./TaskInbox.ts"
import { TaskOutput } from "./TaskOutput.ts"
import { TaskStore } from "./TaskStore.ts"

/**
 * Takes one step of a task: from its claim to its end, or to the time when it is due again. ADR 0149,
 * docs/reference/tasks.md#execution
 */
export class TaskRunner extends Context.Service<
  TaskRunner,
  {
    /**
     * Never fails. When it is interrupted or the process drains, it releases the task, so that the next
     * owner goes on at once.
     */
    readonly step: (owned: Owned) => Effect.Effect<void>
    /**
     * Of a task that was ended from outside: interrupts the step in hand here, and asks the vendor to
     * cancel the job, best effort. Called by the process that has ended it, so that the vendor is asked
     * once. docs/reference/tasks.md#cancel
     */
    readonly stop: (id: TaskId) => Effect.Effect<void>
  }
>()("gateway/tasks/TaskRunner") {
  static readonly layer = Layer.effect(
    TaskRunner,
    Effect.gen(function* () {
      const inbox = yield* TaskInbox
      const notifier = yield* WorkNotifier
      const store = yield* TaskStore
      const running = yield* RunningTasks
      const advance = yield* makeAdvance
      const work = yield* VendorWork
      const isTraced = (yield* Effect.tracer) !== Tracer.Tracer.defaultValue()
      const release = Effect.fnUntraced(
        function* ({ epoch, task }: Owned) {
          yield* store.releaseRun(task.id, epoch)
          yield* notifier.offerTask(task.id)
        },
        (given) => Effect.ignore(given)
      )
      const step = (owned: Owned) => {
        const taken = Effect.map(advance(owned), (dueAt) => {
          if (Option.isSome(dueAt)) inbox.wake(DateTime.toEpochMillis(dueAt.value))
        })
        return running.whileOwned(owned, taken, release(owned))
      }
      return TaskRunner.of({
        // The request that created the task is over: its trace is a link
        step: (owned) =>
          isTraced
            ? Effect.withSpan(step(owned), "TaskRunner.step", { root: true, links: linksOf(owned) })
            : step(owned),
        stop: Effect.fn("TaskRunner.stop")(function* (id) {
          yield* retryStore(running.check(id))
          yield* work.cancel(id)
        })
      })
    })
  )
}

/** The trace of the create. A link names a span, and none was stored: the trace's own first half stands for it. */
const linksOf = ({ task: { traceId } }: Owned): Array<Tracer.SpanLink> =>
  traceId === null
    ? []
    : [{ span: Tracer.externalSpan({ traceId, spanId: traceId.slice(0, 16) }), attributes: {} }]

class DeadlinePassed extends Schema.TaggedError<DeadlinePassed>()("DeadlinePassed", {}) {}

/** After its deadline a task submits nothing. */
const before = <A, E, R>(deadlineAt: DateTime.Utc, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(DateTime.now, (now): Effect.Effect<A, E | DeadlinePassed, R> => {
    const left = DateTime.distance(now, deadlineAt)
    const passed = Effect.fail(new DeadlinePassed())
    return Duration.isPositive(left)
      ? Effect.timeoutOrElse(effect, { duration: left, orElse: () => passed })
      : passed
  })

/** Longer than the queries of a poll together. */
const farDeadline = Duration.minutes(5)

/** Takes the step; returns when the next one is due, if there is one. */
const makeAdvance = Effect.gen(function* () {
  const completion = yield* TaskCompletion
  const output = yield* TaskOutput
  const store = yield* TaskStore
  const work = yield* VendorWork

  /** A task that is gone, or that this program cannot read, is not this process's. */
  const rowOf = (owned: Owned): Effect.Effect<TaskRow, Fenced> =>
    owned.job === undefined
      ? Effect.succeed(owned.task)
      : Effect.flatMap(retryStore(store.ofJob(owned.task.id)), (row) =>
          Effect.mapError(Effect.fromOption(row), () => new Fenced())
        )

  return Effect.fnUntraced(function* (owned: Owned) {
    const { deadlineAt, startsAt, task } = owned
    const epoch = Option.some(owned.epoch)
    const fail = (error: TaskError) =>
      Effect.flatMap(rowOf(owned), (row) => retryStore(completion.fail(row, epoch, error))).pipe(
        Effect.catchTag("Fenced", () => Effect.succeed(false))
      )
    const now = yield* DateTime.now
    // Under a rate limit the claim came before its permit
    const early = DateTime.distance(now, startsAt)
    const next = Duration.isPositive(early)
      ? Effect.delay(work.next(owned), early)
      : work.next(owned)
    // A poll ends by itself, long before that
    const isFar = Duration.isGreaterThan(DateTime.distance(now, deadlineAt), farDeadline)
    const inTime = isFar && owned.job !== undefined ? next : before(deadlineAt, next)
    return yield* inTime.pipe(
      Effect.flatMap((next) =>
        next._tag === "Waits"
          ? Effect.succeedSome(next.until)
          : Effect.flatMap(rowOf(owned), (row) =>
              Effect.flatMap(output.persistResults(row, next.job), ({ captured, urls }) =>
                retryStore(completion.complete(row, epoch, urls, captured))
              )
            ).pipe(Effect.as(Option.none<DateTime.Utc>()), (end) => before(deadlineAt, end))
      ),
      Effect.catchTags({
        DeadlinePassed: () =>
          Effect.flatMap(fail(deadlinePassed), (ended) =>
            ended ? Effect.as(work.cancel(task.id), Option.none()) : Effect.succeedNone
          ),
        // Another process owns the task or has ended it: this step only stops
        Fenced: () => Effect.succeedNone,
        VendorError: (error) =>
          Effect.logWarning(
            `Task ${task.id} was failed by ${modelAt(task).vendor}: ${error.message}`
          ).pipe(
            Effect.annotateLogs({ class: error.class, vendorCode: error.vendorCode ?? null }),
            Effect.annotateLogs({ requestId: error.requestId ?? null }),
            Effect.andThen(fail(taskErrorOf(error))),
            Effect.as(Option.none())
          )
      }),
      Effect.catchDefect((defect) =>
        Effect.logError(`Task ${task.id} failed inside the service`, defect).pipe(
          Effect.andThen(fail(internalError)),
          Effect.as(Option.none())
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
