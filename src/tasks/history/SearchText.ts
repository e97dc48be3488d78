import { DateTime, Effect, Option, Schema } from "effect"
import { TaskBatchId, TaskId } from "../../domain/Ids.ts"
import type { UserId } from "../../domain/Ids.ts"
import { searchedDays } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import type { TaskFilter, TaskHistoryStore } from "./TaskHistoryStore.ts"

/** The task ids in the response to a create. */
const Created = Schema.Struct({ task_info: Schema.Struct({ id: TaskId }) })
const Answer = Schema.fromJsonString(
  Schema.Union([
    Created,
    Schema.Struct({ tasks: Schema.Array(Created) }),
    Schema.Struct({ id: TaskBatchId })
  ])
)

const ofAnswer = (answer: typeof Answer.Type): Partial<TaskFilter> => {
  if ("task_info" in answer) return { ids: [answer.task_info.id] }
  return "tasks" in answer
    ? { ids: answer.tasks.map(({ task_info: { id } }) => id) }
    : { batchId: answer.id }
}

const isTaskId = Schema.is(TaskId)
const isBatchId = Schema.is(TaskBatchId)
export const isTraceId = (text: string): boolean => /^[0-9a-f]{32}$/u.test(text)
const decodeAnswer = Schema.decodeOption(Answer)

/**
 * Turns a search text into a filter. A text that is the id of a task, a batch, a trace or an idempotency key selects
 * its tasks. Any other text selects tasks of the last days whose prompt and metadata contain its words.
 * docs/reference/tasks.md#search
 */
export const filterOfText = (store: TaskHistoryStore["Service"]) => {
  const byId = (text: string): Partial<TaskFilter> | undefined => {
    if (isTaskId(text)) return { ids: [TaskId.make(text.toLowerCase())] }
    if (isBatchId(text)) return { batchId: text }
    return isTraceId(text) ? { traceId: text } : undefined
  }
  return Effect.fnUntraced(function* (
    userId: UserId,
    text: string,
    since: DateTime.Utc | undefined
  ): Effect.fn.Return<Partial<TaskFilter>, StoreUnavailable> {
    const answer = yield* store.answerTo(userId, text)
    const ofKey = Option.map(Option.flatMap(answer, decodeAnswer), ofAnswer)
    if (Option.isSome(ofKey)) return ofKey.value
    const found = byId(text)
    if (found !== undefined) {
      const { rows } = yield* store.search(userId, { ...found, limit: 1, isBrief: true })
      if (rows.length > 0) return found
    }
    const first = DateTime.subtract(yield* DateTime.now, { days: searchedDays })
    return {
      words: text.split(/\s+/u),
      since: since === undefined ? first : DateTime.max(since, first)
    }
  })
}
