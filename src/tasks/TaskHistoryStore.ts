import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema, Struct } from "effect"
import { DeliveryId, EndpointId, EventId } from "../domain/Ids.ts"
import type { TaskId, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { TaskStatus } from "../domain/Task.ts"
import { DeliveryStatus, FailureClass } from "../domain/Webhook.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { rowsOf, Time } from "../db/Rows.ts"
import { taskColumns, TaskRow } from "./TaskStore.ts"
import { EntryRow } from "../wallet/WalletEntryStore.ts"

/** A task in a list: all but its body. */
export const TaskSummary = TaskRow.mapFields(Struct.omit(["body"])).annotate({
  identifier: "TaskSummary"
})
export type TaskSummary = typeof TaskSummary.Type

/** Which tasks of a user: absent means all. */
export interface TaskFilter {
  readonly status: Option.Option<TaskStatus>
  readonly model: Option.Option<string>
  readonly vendor: Option.Option<string>
  readonly before: Option.Option<TaskId>
  readonly limit: number
}

/** One paid submit, without what the vendor's handle holds. */
export const AttemptRow = Schema.Struct({
  n: Schema.Int,
  vendor: Schema.String,
  accountId: Schema.String,
  state: Schema.Literals(["submitting", "submitted", "refused", "ambiguous"]),
  /** The class of the failure alone: the vendor's words are for the operator. */
  failureClass: Schema.NullOr(Schema.String),
  startedAt: Time,
  answeredAt: Schema.NullOr(Time)
})
export type AttemptRow = typeof AttemptRow.Type

/** One attempt of one delivery; all columns of the attempt are null when none was made yet. */
const DeliveryAttemptRow = Schema.Struct({
  id: DeliveryId,
  endpointId: EndpointId,
  eventId: EventId,
  eventType: Schema.String,
  status: DeliveryStatus,
  createdAt: Time,
  updatedAt: Time,
  traceId: Schema.NullOr(Schema.String),
  seq: Schema.NullOr(Schema.Int),
  dueAt: Schema.NullOr(Time),
  startedAt: Schema.NullOr(Time),
  endedAt: Schema.NullOr(Time),
  httpStatus: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass)
})
export type DeliveryAttemptRow = typeof DeliveryAttemptRow.Type

/** All that happened to one task. */
export interface TaskHistory {
  readonly task: TaskRow
  readonly attempts: ReadonlyArray<AttemptRow>
  readonly entries: ReadonlyArray<EntryRow>
  /** Deliveries joined with their attempts, in the order of both. */
  readonly deliveries: ReadonlyArray<DeliveryAttemptRow>
}

/** Reads what the other stores wrote about tasks, for the management API. Writes nothing. */
export class TaskHistoryStore extends Context.Service<
  TaskHistoryStore,
  {
    readonly list: (
      userId: UserId,
      filter: TaskFilter
    ) => Effect.Effect<ReadonlyArray<TaskSummary>, StoreUnavailable>
    /** `None`: this user has no such task. */
    readonly history: (
      userId: UserId,
      id: TaskId
    ) => Effect.Effect<Option.Option<TaskHistory>, StoreUnavailable>
  }
>()("gateway/tasks/TaskHistoryStore") {
  static readonly layer = Layer.effect(
    TaskHistoryStore,
    Effect.map(PgClient.PgClient, (sql) =>
      TaskHistoryStore.of({ list: list(sql), history: history(sql) })
    )
  )
}

function list(sql: PgClient.PgClient) {
  return (userId: UserId, filter: TaskFilter) => {
    const status = Option.getOrNull(filter.status)
    const model = Option.getOrNull(filter.model)
    const vendor = Option.getOrNull(filter.vendor)
    const before = Option.getOrNull(filter.before)
    return sql`
      SELECT ${sql.literal(taskColumns)}, t.trace_id FROM tasks t
      WHERE t.user_id = ${userId}
        AND (${status}::text IS NULL OR t.status = ${status}::text)
        AND (${model}::text IS NULL OR t.model = ${model}::text)
        AND (${vendor}::text IS NULL OR t.vendor = ${vendor}::text)
        AND (${before}::uuid IS NULL OR t.id < ${before}::uuid)
      ORDER BY t.id DESC LIMIT ${filter.limit}`.pipe(rowsOf(TaskSummary), storeFailures)
  }
}

function history(sql: PgClient.PgClient) {
  const attempts = (id: TaskId) =>
    sql`
      SELECT n, vendor, account_id, state, split_part(failure, ':', 1) AS failure_class,
        started_at, answered_at
      FROM vendor_attempts WHERE task_id = ${id} ORDER BY n`.pipe(rowsOf(AttemptRow))
  const entries = (userId: UserId, id: TaskId) =>
    sql`
      SELECT * FROM wallet_entries
      WHERE subject_id = ${id} AND user_id = ${userId} ORDER BY seq`.pipe(rowsOf(EntryRow))
  const deliveries = (id: TaskId) =>
    sql`
      SELECT d.id, d.endpoint_id, d.event_id, d.event_type, d.status, d.created_at, d.updated_at,
        e.trace_id, a.seq, a.due_at, a.started_at, a.ended_at, a.status AS http_status, a.failure
      FROM deliveries_and_claims d
      LEFT JOIN events e ON e.id = d.event_id AND e.created_at = d.event_created_at
      LEFT JOIN attempts_and_claims a ON a.delivery_id = d.id
      WHERE d.task_id = ${id}
      ORDER BY d.created_at, d.id, a.seq`.pipe(rowsOf(DeliveryAttemptRow))
  return Effect.fnUntraced(function* (userId: UserId, id: TaskId) {
    const found = yield* sql`SELECT * FROM tasks WHERE id = ${id} AND user_id = ${userId}`.pipe(
      rowsOf(TaskRow)
    )
    const task = Array.head(found)
    if (Option.isNone(task)) return Option.none<TaskHistory>()
    return Option.some<TaskHistory>({
      task: task.value,
      attempts: yield* attempts(id),
      entries: yield* entries(userId, id),
      deliveries: yield* deliveries(id)
    })
  }, storeFailures)
}
