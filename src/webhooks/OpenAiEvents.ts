import { DateTime } from "effect"
import type { EventBody, OpenAiEventType } from "../domain/Event.ts"
import { batchIdOf, responseIdOf } from "../domain/Ids.ts"
import type { EventId, TaskId } from "../domain/Ids.ts"

/** How a task ended. */
interface Outcome {
  readonly status: "completed" | "failed"
  /** A response that ended because it reached its token limit. */
  readonly isIncomplete: boolean
  readonly error?: { readonly code: number }
  /** The charge of a failed task for its partial results. */
  readonly charge?: unknown
}

/** `task_info.error.code` of a cancelled task; below, of a task that missed its deadline. */
const cancelled = 4004
const deadlinePassed = 4005

/**
 * The OpenAI event for a task's outcome, with the id of the gateway's event. `undefined`: OpenAI has no such event.
 * Source: OpenAI's webhook events. docs/reference/webhooks.md#openais-format
 */
export const openAiOutcome = (
  id: EventId,
  task: { readonly id: TaskId; readonly resultKind: string; readonly vendor: string },
  outcome: Outcome,
  now: DateTime.Utc
): EventBody["openai"] => {
  switch (task.resultKind) {
    case "responses":
      return openAiEvent(id, responseType(outcome), responseIdOf(task.id), now)
    case "batches":
      return task.vendor === "openai"
        ? openAiEvent(id, batchType(outcome), batchIdOf(task.id), now)
        : undefined
    case "videos":
      return openAiEvent(id, `video.${outcome.status}`, task.id, now)
    default:
      return undefined
  }
}

const responseType = ({ error, isIncomplete, status }: Outcome): OpenAiEventType => {
  if (status === "completed") return isIncomplete ? "response.incomplete" : "response.completed"
  return error?.code === cancelled ? "response.cancelled" : "response.failed"
}

/**
 * A batch that expired at the vendor has results, and therefore a charge. Without a charge, the gateway gave it up and
 * it failed.
 */
const batchType = ({ charge, error, status }: Outcome): OpenAiEventType => {
  if (status === "completed") return "batch.completed"
  if (error?.code === cancelled) return "batch.cancelled"
  return error?.code === deadlinePassed && charge !== undefined ? "batch.expired" : "batch.failed"
}

/** OpenAI's envelope. `about` is the id of the object that changed; `created_at` is in Unix seconds. */
const openAiEvent = (id: EventId, type: OpenAiEventType, about: string, now: DateTime.Utc) => {
  const created_at = Math.floor(DateTime.toEpochMillis(now) / 1000)
  const body = JSON.stringify({ id, object: "event", created_at, type, data: { id: about } })
  return { type, body }
}
