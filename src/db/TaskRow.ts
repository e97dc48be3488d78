import { Effect, Schema, Struct } from "effect"
import { TaskId, UserId } from "../domain/Ids.ts"
import { Candidate } from "../domain/task/Candidate.ts"
import { Metadata } from "../domain/task/Metadata.ts"
import { ResultKind, TaskAction, TaskError, TaskStatus } from "../domain/task/Task.ts"
import { Micro, Time } from "./Rows.ts"

const nullByDefault = <S extends Schema.Constraint>(schema: S) =>
  Schema.NullOr(schema).pipe(Schema.withConstructorDefault(Effect.succeed(null)))

/** A row of `tasks`. */
export class TaskRow extends Schema.Class<TaskRow>("TaskRow")({
  id: TaskId,
  userId: UserId,
  vendor: Schema.String,
  model: Schema.String,
  action: TaskAction,
  resultKind: ResultKind,
  status: TaskStatus,
  body: Schema.Json,
  sandbox: Schema.Boolean,
  price: Micro,
  /** The number of the catalog with which it was accepted; null for the adopted catalog. */
  catalogId: Schema.NullOr(Schema.Int),
  captured: Schema.NullOr(Micro),
  result: Schema.NullOr(Schema.Array(Schema.String)),
  error: Schema.NullOr(TaskError),
  metadata: Schema.NullOr(Metadata),
  /** The models of the alias in the task's path. Null if the path names a model. */
  candidates: nullByDefault(Schema.Array(Candidate)),
  /** The index of the task's current model. */
  candidate: nullByDefault(Schema.Int),
  traceId: Schema.NullOr(Schema.String),
  createdAt: Time,
  startedAt: Schema.NullOr(Time),
  updatedAt: Time
}) {}

/** A task as GET returns it: without its body, which may be long. */
export const TaskView = TaskRow.mapFields(Struct.omit(["body", "traceId"])).annotate({
  identifier: "TaskView"
})
export type TaskView = typeof TaskView.Type

/** The columns of a `TaskView` in a table named `t`. */
export const taskColumns = [
  "id, user_id, vendor, model, action, result_kind, status, sandbox, price, catalog_id, captured, result, error",
  "metadata, candidates, candidate, created_at, started_at, updated_at"
]
  .flatMap((line) => line.split(", "))
  .map((column) => `t.${column}`)
  .join(", ")
