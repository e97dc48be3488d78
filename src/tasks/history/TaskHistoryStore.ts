import { PgClient } from "@effect/sql-pg"
import { Array, Context, DateTime, Effect, Layer, Schema, Struct } from "effect"
import type { Option } from "effect"
import { idAt, scanList, when } from "../../db/ListScan.ts"
import type { ScannedPage } from "../../db/ListScan.ts"
import { rowsOf, Time } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { taskColumns, TaskRow } from "../../db/TaskRow.ts"
import type { Credits } from "../../domain/Credits.ts"
import type { ApiKeyId, TaskId, UserId } from "../../domain/Ids.ts"
import type { Metadata } from "../../domain/Metadata.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import type { TaskStatus } from "../../domain/Task.ts"

/** With the hash of the catalog that it was accepted with. */
const withCatalog = Struct.assign({ catalog: Schema.NullOr(Schema.String) })

const catalogHash = "(SELECT k.hash FROM catalogs k WHERE k.id = t.catalog_id) AS catalog"

/** A task as its owner reads it later. */
export const PastTask = TaskRow.mapFields(withCatalog).annotate({ identifier: "PastTask" })
export type PastTask = typeof PastTask.Type

/** The same in a list: without its body. */
export const TaskSummary = PastTask.mapFields(Struct.omit(["body"])).annotate({
  identifier: "TaskSummary"
})
export type TaskSummary = typeof TaskSummary.Type

/** A filter that is absent matches all tasks. */
export interface TaskFilter {
  readonly status?: TaskStatus | undefined
  readonly apiKeyId?: ApiKeyId | undefined
  readonly model?: string | undefined
  readonly vendor?: string | undefined
  readonly traceId?: string | undefined
  /** Has these values under these keys. */
  readonly metadata?: Metadata | undefined
  /** Created at or after. */
  readonly since?: DateTime.Utc | undefined
  /** Created before. */
  readonly until?: DateTime.Utc | undefined
  /** Of what was charged: unfinished tasks have no cost. */
  readonly minCost?: Credits | undefined
  readonly maxCost?: Credits | undefined
  readonly before?: TaskId | undefined
  readonly limit: number
}

/** One paid submit, without the vendor's handle. */
export const AttemptRow = Schema.Struct({
  n: Schema.Int,
  vendor: Schema.String,
  accountId: Schema.String,
  state: Schema.Literals(["submitting", "submitted", "refused", "ambiguous"]),
  /** Without the vendor's message, which is for the operator only. */
  failureClass: Schema.NullOr(Schema.String),
  startedAt: Time,
  answeredAt: Schema.NullOr(Time)
})
export type AttemptRow = typeof AttemptRow.Type

/** Tasks and their vendor attempts as the management API shows them. Read only. */
export class TaskHistoryStore extends Context.Service<
  TaskHistoryStore,
  {
    readonly search: (
      userId: UserId,
      filter: TaskFilter
    ) => Effect.Effect<ScannedPage<TaskSummary>, StoreUnavailable>
    readonly find: (
      userId: UserId,
      id: TaskId
    ) => Effect.Effect<Option.Option<PastTask>, StoreUnavailable>
    /** Oldest first. */
    readonly attempts: (id: TaskId) => Effect.Effect<ReadonlyArray<AttemptRow>, StoreUnavailable>
  }
>()("gateway/tasks/TaskHistoryStore") {
  static readonly layer = Layer.effect(
    TaskHistoryStore,
    Effect.map(PgClient.PgClient, (sql) =>
      TaskHistoryStore.of({
        search: search(sql),
        find: (userId, id) =>
          sql`
            SELECT t.*, ${sql.literal(catalogHash)} FROM tasks t
            WHERE t.id = ${id} AND t.user_id = ${userId}`.pipe(
            rowsOf(PastTask),
            Effect.map(Array.head),
            storeFailures
          ),
        attempts: (id) =>
          sql`
            SELECT n, vendor, account_id, state, split_part(failure, ':', 1) AS failure_class,
              started_at, answered_at
            FROM vendor_attempts WHERE task_id = ${id} ORDER BY n`.pipe(
            rowsOf(AttemptRow),
            storeFailures
          )
      })
    )
  )
}

function search(sql: PgClient.PgClient) {
  return (userId: UserId, filter: TaskFilter) => {
    const { before, model, since, traceId, until, vendor } = filter
    const filters = [
      ...when(filter.status, (status) => sql`t.status = ${status}`),
      ...when(vendor, (name) => sql`t.vendor = ${name}`),
      ...when(filter.minCost, (cost) => sql`t.captured >= ${cost}`),
      ...when(filter.maxCost, (cost) => sql`t.captured <= ${cost}`),
      ...Object.entries(filter.metadata ?? {}).map(
        ([key, value]) => sql`t.metadata ->> ${key}::text = ${value}`
      )
    ]
    // One condition and its index select the candidates; the others are filters
    const conditions = [
      ...when(before, (id) => sql`c.id < ${id}`),
      ...when(since, (at) => sql`c.id >= ${idAt(DateTime.toEpochMillis(at))}`),
      ...when(until, (at) => sql`c.id < ${idAt(DateTime.toEpochMillis(at))}`)
    ]
    if (traceId !== undefined) {
      conditions.push(sql`c.trace_id = ${traceId}`)
      filters.push(sql`t.user_id = ${userId}`)
      filters.push(...when(model, (name) => sql`t.model = ${name}`))
      filters.push(...when(filter.apiKeyId, (id) => sql`t.api_key_id = ${id}`))
    } else if (filter.apiKeyId !== undefined) {
      conditions.push(sql`c.api_key_id = ${filter.apiKeyId}`)
      filters.push(sql`t.user_id = ${userId}`)
      filters.push(...when(model, (name) => sql`t.model = ${name}`))
    } else {
      conditions.push(sql`c.user_id = ${userId}`)
      if (model !== undefined) conditions.push(sql`c.model = ${model}`)
      // The index of failed tasks, whose column does not change with every status
      else if (filter.status === "failed") conditions.push(sql`c.error IS NOT NULL`)
    }
    return scanList(sql)({
      user: userId,
      row: TaskSummary,
      columns: sql.literal(`${taskColumns}, t.trace_id, ${catalogHash}`),
      key: "id",
      candidates: sql`SELECT * FROM tasks c WHERE ${sql.and(conditions)} ORDER BY c.id DESC`,
      filters,
      limit: filter.limit
    })
  }
}
