import { Schema } from "effect"
import { CreditsFromString } from "../Credits.ts"
import { TaskBatchId, TaskId } from "../Ids.ts"
import { Timestamp } from "./Task.ts"

/** Tasks that one request created, with their totals. docs/reference/batches.md */
export const TaskBatch = Schema.Struct({
  id: TaskBatchId,
  /** `completed` when every task has ended, whatever its outcome. */
  status: Schema.Literals(["in_progress", "completed"]),
  counts: Schema.Struct({
    total: Schema.Int,
    unfinished: Schema.Int,
    completed: Schema.Int,
    failed: Schema.Int
  }),
  receipt: Schema.Struct({
    held: CreditsFromString,
    captured: CreditsFromString,
    released: CreditsFromString,
    currency: Schema.Literal("credits")
  }),
  created_at: Timestamp,
  ended_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "TaskBatch" })
export type TaskBatch = typeof TaskBatch.Type

/** The response to its create. */
export const CreatedTaskBatch = Schema.Struct({
  ...TaskBatch.fields,
  /** In the order of the request. */
  task_ids: Schema.Array(TaskId)
}).annotate({ identifier: "CreatedTaskBatch" })
