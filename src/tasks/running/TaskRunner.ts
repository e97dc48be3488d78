import { Context, DateTime, Duration, Effect, Layer, Option, Schema, Tracer } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { modelAt } from "../../domain/task/Candidate.ts"
import type { TaskError } from "../../domain/task/Task.ts"
import { Hints } from "../../process/signals/Hints.ts"
import { pollIntervalMax } from "../../vendors/Polling.ts"
import type { VendorError } from "../../vendors/VendorError.ts"
import { cancelledByOwner, TaskCompletion } from "../completion/TaskCompletion.ts"
import { TaskOutput } from "../completion/TaskOutput.ts"
import type { JobResult } from "../completion/TaskOutput.ts"
import { Fenced } from "../submission/PaidSubmit.ts"
import type { VendorStep } from "../submission/SubmitStep.ts"
import { taskErrorOf } from "../submission/VendorFailure.ts"
import { VendorWork } from "../submission/VendorWork.ts"
import { TaskStore } from "../TaskStore.ts"
import { BatchOutput } from "../vendorbatches/BatchOutput.ts"
import type { Owned } from "./OwnedTask.ts"
import { RunningTasks } from "./RunningTasks.ts"
import { TaskInbox } from "./TaskInbox.ts"

/**
 * Runs one step of a task, from its claim until the task ends or is due again. ADR 0149,
 * docs/reference/tasks.md#execution
 */
export class TaskRunner extends Context.Service<
  TaskRunner,
  {
    /**
     * Never fails. If it is interrupted or the process drains, it releases the task, so that the next owner continues
     * at once.
     */
    readonly step: (owned: Owned) => Effect.Effect<void>
    /**
     * For a task that was ended from outside: interrupts its step in this process and asks the vendor to cancel the job
     * (best effort). Only the process that ended the task calls this, so the vendor is asked once.
     * docs/reference/tasks.md#cancel
     */
    readonly stop: (id: TaskId) => Effect.Effect<void>
  }
>()("gateway/tasks/TaskRunner") {
  static readonly layer = Layer.effect(
    TaskRunner,
    Effect.gen(function* () {
      const hints = yield* Hints
      const store = yield* TaskStore
      const running = yield* RunningTasks
      const advance = yield* makeAdvance
      const work = yield* VendorWork
      const isTraced = (yield* Effect.tracer) !== Tracer.Tracer.defaultValue()
      const release = Effect.fnUntraced(
        function* ({ epoch, task }: Owned) {
          yield* store.handOver(task.id, epoch)
          hints.publishUnsafe("left", "")
        },
        (given) => Effect.ignore(given)
      )
      const step = (owned: Owned) =>
        running.whileOwned(
          owned,
          advance(owned),
          Effect.suspend(() => release(owned))
        )
      return TaskRunner.of({
        // The request that created the task has ended, so its trace becomes a link
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

/**
 * A link to the trace of the create. A link needs a span id, but none is stored; the first half of the trace id is used
 * instead.
 */
const linksOf = ({ task: { traceId } }: Owned): Array<Tracer.SpanLink> =>
  traceId === null
    ? []
    : [{ span: Tracer.externalSpan({ traceId, spanId: traceId.slice(0, 16) }), attributes: {} }]

class DeadlinePassed extends Schema.TaggedError<DeadlinePassed>()("DeadlinePassed", {}) {}

/** Interrupts the effect at the deadline; nothing is submitted after it. */
const before = <A, E, R>(deadlineAt: DateTime.Utc, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(DateTime.now, (now): Effect.Effect<A, E | DeadlinePassed, R> => {
    const left = DateTime.distance(now, deadlineAt)
    const passed = Effect.fail(new DeadlinePassed())
    return Duration.isPositive(left)
      ? Effect.timeoutOrElse(effect, { duration: left, orElse: () => passed })
      : passed
  })

/** More than all requests of a poll can take together. */
const farDeadlineMillis = Duration.toMillis(Duration.minutes(5))

/** Runs the step and returns when the next one is due, if there is a next one. */
const makeAdvance = Effect.gen(function* () {
  const batches = yield* BatchOutput
  const completion = yield* TaskCompletion
  const inbox = yield* TaskInbox
  const output = yield* TaskOutput
  const store = yield* TaskStore
  const work = yield* VendorWork

  /** A task that no longer exists, or that this release cannot read, counts as fenced. */
  const rowOf = (owned: Owned, isWhole = false): Effect.Effect<TaskRow, Fenced> =>
    owned.job === undefined
      ? Effect.succeed(owned.task)
      : Effect.flatMap(retryStore(store.ofJob(owned.task.id, isWhole)), (row) =>
          Effect.mapError(Effect.fromOption(row), () => new Fenced())
        )

  const fail = (owned: Owned, error: TaskError) =>
    Effect.flatMap(rowOf(owned), (row) =>
      retryStore(completion.fail(row, Option.some(owned.epoch), error))
    ).pipe(Effect.catchTag("Fenced", () => Effect.succeed(false)))

  const persist = (owned: Owned, row: TaskRow, { account, result }: JobResult) =>
    result.batch === undefined
      ? output.persistResults(row, { account, result }, owned.deadlineAt)
      : batches.persist(owned, { account, result: result.batch })

  // A price by usage figures also depends on the body
  const complete = (owned: Owned, job: JobResult) =>
    Effect.flatMap(rowOf(owned, job.result.usage !== undefined), (row) =>
      Effect.flatMap(persist(owned, row, job), (persisted) => {
        const error = errorOf(job)
        const epoch = Option.some(owned.epoch)
        return retryStore(
          error === undefined
            ? completion.complete(row, epoch, persisted)
            : completion.fail(row, epoch, error, persisted)
        )
      })
    )

  /** The results of a batch are paid for, so a batch whose results cannot be read waits for another poll. */
  const readLater = Effect.fnUntraced(function* (owned: Owned, error: VendorError) {
    yield* Effect.logWarning(`The results of task ${owned.task.id} were not read: ${error.message}`)
    const now = yield* DateTime.now
    const dueAt = DateTime.addDuration(now, pollIntervalMax)
    const next = { dueAt, queue: { name: owned.queue } }
    yield* retryStore(store.endStep({ taskId: owned.task.id, epoch: owned.epoch, next, now }))
    inbox.wake(DateTime.toEpochMillis(dueAt))
  })

  /** Ends the task or the step after a failure. */
  const endWith = (
    owned: Owned,
    error: DeadlinePassed | Fenced | VendorError
  ): Effect.Effect<void> => {
    switch (error._tag) {
      case "DeadlinePassed":
        return Effect.flatMap(fail(owned, deadlinePassed), (ended) =>
          ended ? work.cancel(owned.task.id) : Effect.void
        )
      // Another process owns the task or has ended it, so this step just stops
      case "Fenced":
        return Effect.void
      case "VendorError":
        return Effect.logWarning(
          `Task ${owned.task.id} failed at ${modelAt(owned.task).vendor}: ${error.message}`
        ).pipe(
          Effect.annotateLogs({ class: error.class, vendorCode: error.vendorCode ?? null }),
          Effect.annotateLogs({ requestId: error.requestId ?? null }),
          Effect.andThen(fail(owned, taskErrorOf(error))),
          Effect.asVoid
        )
    }
  }

  const nextOf = (owned: Owned, now: DateTime.Utc) => {
    const { deadlineAt, job, startsAt } = owned
    // Under a rate limit, a task may be claimed before its permit is valid
    const next = DateTime.isGreaterThan(startsAt, now)
      ? Effect.delay(work.next(owned), DateTime.distance(now, startsAt))
      : work.next(owned)
    // A poll ends by itself long before a deadline that is far away, so it needs no timer
    const left = DateTime.toEpochMillis(deadlineAt) - DateTime.toEpochMillis(now)
    return left > farDeadlineMillis && job !== undefined ? next : before(deadlineAt, next)
  }

  const endStep = (owned: Owned, next: VendorStep) =>
    next._tag === "Waits"
      ? Effect.sync(() => inbox.wake(DateTime.toEpochMillis(next.until)))
      : Effect.catchIf(
          Effect.asVoid(before(owned.deadlineAt, complete(owned, next.job))),
          (error): error is VendorError =>
            next.job.result.batch !== undefined &&
            error._tag === "VendorError" &&
            error.class === "RETRYABLE",
          (error) => readLater(owned, error)
        )

  // Avoids a generator and unused closures, which would stay in memory for the whole poll. ADR 0149
  return (owned: Owned): Effect.Effect<void> =>
    Effect.flatMap(DateTime.now, (now) => nextOf(owned, now)).pipe(
      Effect.flatMap((next) => endStep(owned, next)),
      Effect.catch((error) => endWith(owned, error)),
      Effect.catchDefect((defect) =>
        Effect.logError(`Task ${owned.task.id} failed inside the service`, defect).pipe(
          Effect.andThen(fail(owned, internalError)),
          Effect.asVoid
        )
      )
    )
})

/** The error of a response or a batch that ended early and is charged for what it used. */
const errorOf = ({ result: { batch, tokens } }: JobResult): TaskError | undefined => {
  if (tokens?.end === "cancelled" || batch?.status === "cancelled") return cancelledByOwner
  return batch?.status === "expired" ? deadlinePassed : undefined
}

/** The error of a task that did not finish before its deadline. docs/reference/errors.md#task-error-codes */
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
