import { Context, DateTime, Duration, Effect, Layer, Metric, Option } from "effect"
import { AppConfig } from "../../config/Config.ts"
import type { TaskView } from "../../db/TaskRow.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { modelAt } from "../../domain/task/Candidate.ts"
import type { TaskError } from "../../domain/task/Task.ts"
import { taskResult } from "../../domain/task/TaskBody.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import { balanceLow, taskEvent } from "../../webhooks/Events.ts"
import { openAiOutcome } from "../../webhooks/OpenAiEvents.ts"
import { ConcurrencyLimiter } from "../submission/ConcurrencyLimiter.ts"
import { TaskChanges } from "../TaskChanges.ts"
import { TaskStore } from "../TaskStore.ts"
import type { Finish } from "../TaskStore.ts"
import type { PersistedOutput } from "./TaskOutput.ts"

/**
 * The only way to end a task: state, money, event and deliveries in one transaction, then the
 * notifications. `epoch` is the owner's; without it (cancel) the first call wins. Both methods return
 * whether this call ended the task.
 */
export class TaskCompletion extends Context.Service<
  TaskCompletion,
  {
    readonly complete: (
      task: TaskView,
      epoch: Option.Option<number>,
      output: PersistedOutput
    ) => Effect.Effect<boolean, StoreUnavailable>
    readonly fail: (
      task: TaskView,
      epoch: Option.Option<number>,
      error: TaskError,
      charge?: Pick<PersistedOutput, "captured" | "usage">
    ) => Effect.Effect<boolean, StoreUnavailable>
  }
>()("gateway/tasks/TaskCompletion") {
  static readonly layer = Layer.effect(
    TaskCompletion,
    Effect.gen(function* () {
      const { balanceAlertThrottle } = yield* AppConfig
      const changes = yield* TaskChanges
      const slots = yield* ConcurrencyLimiter
      const store = yield* TaskStore
      const notifier = yield* WorkNotifier

      const end = Effect.fnUntraced(function* (
        task: TaskView,
        epoch: Option.Option<number>,
        outcome: Finish["outcome"],
        isIncomplete = false
      ) {
        const now = yield* DateTime.now
        const payload = taskResult(
          {
            id: task.id,
            status: outcome.status,
            createdAt: task.createdAt,
            updatedAt: now,
            error: outcome.status === "failed" ? outcome.error : null,
            result: outcome.status === "completed" ? outcome.result : null,
            metadata: task.metadata
          },
          task.resultKind
        )
        const event = taskEvent(modelAt(task), payload, now)
        const finished = yield* store.finish({
          taskId: task.id,
          epoch,
          outcome,
          event: {
            ...event,
            openai: openAiOutcome(event.id, task, { ...outcome, isIncomplete }, now)
          },
          alert: (wallet) => balanceLow(wallet, now),
          throttleSeconds: Duration.toSeconds(balanceAlertThrottle),
          now
        })
        if (finished._tag === "Fenced") return false
        yield* countEnded(task, outcome)
        yield* Effect.uninterruptible(
          Effect.all(
            [
              notifier.notifyEndpoints(finished.endpoints),
              changes.notify(task.id),
              slots.notifyReleased
            ],
            { discard: true }
          )
        )
        return true
      })

      return TaskCompletion.of({
        complete: (task, epoch, { captured, isIncomplete, urls: result, usage }) =>
          end(task, epoch, { status: "completed", result, captured, usage }, isIncomplete),
        fail: (task, epoch, error, charge) => end(task, epoch, { status: "failed", error, charge })
      })
    })
  )
}

/** The error of a cancelled task, written by the cancelling request or by the poll that finds the job cancelled. */
export const cancelledByOwner: TaskError = {
  code: 4004,
  title: "Cancelled",
  detail: "The task was cancelled by its owner"
}

/** Cancels a task for its owner and stops its step. Returns whether this call ended the task. */
export const makeCancelNow = Effect.gen(function* () {
  const completion = yield* TaskCompletion
  const notifier = yield* WorkNotifier
  return Effect.fnUntraced(function* (task: TaskView) {
    const isEnded = yield* completion.fail(task, Option.none(), cancelledByOwner)
    if (isEnded) yield* notifier.stopTask(task.id)
    return isEnded
  })
})

const endedTotal = Metric.counter("gateway_tasks_ended_total", {
  description: "Tasks that ended, by vendor, model and outcome; cause: the code of a failure",
  incremental: true
})

/** Counts a task of an alias under its current model. */
const countEnded = (task: TaskView, outcome: Finish["outcome"]) => {
  const { model, vendor } = modelAt(task)
  const cause = outcome.status === "failed" ? String(outcome.error.code) : ""
  const labels = { vendor, model, outcome: outcome.status, cause }
  return Metric.update(Metric.withAttributes(endedTotal, labels), 1)
}
