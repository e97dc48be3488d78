import { PgClient } from "@effect/sql-pg"
import { Array, Context, DateTime, Effect, Layer, Option, Schema, Struct } from "effect"
import { idAt } from "../../db/ListScan.ts"
import { rowsOf, Time } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { taskColumns, TaskRow } from "../../db/TaskRow.ts"
import type { Credits } from "../../domain/Credits.ts"
import { TaskBatchId } from "../../domain/Ids.ts"
import type { ApiKeyId, TaskId, UserId } from "../../domain/Ids.ts"
import { listPromptCodePoints, listScanRowsMax } from "../../domain/limits/Limits.ts"
import type { Metadata } from "../../domain/task/Metadata.ts"
import type { ResultKind, TaskStatus } from "../../domain/task/Task.ts"

/**
 * Adds the hash of the catalog with which the task was accepted, the batch that created it and the name of its API key.
 */
const withOrigin = Struct.assign({
  catalog: Schema.NullOr(Schema.String),
  batchId: Schema.NullOr(TaskBatchId),
  keyName: Schema.NullOr(Schema.String),
  /** When the client deleted the task's video. */
  deletedAt: Schema.NullOr(Time)
})

const origin =
  "(SELECT k.hash FROM catalogs k WHERE k.id = t.catalog_id) AS catalog, " +
  "(SELECT k.name FROM api_keys k WHERE k.id = t.api_key_id) AS key_name"

/** The beginning of the prompt. The body's other fields depend on the model. */
const prompt = `CASE WHEN jsonb_typeof(t.body -> 'prompt') = 'string'
  THEN left(t.body ->> 'prompt', ${listPromptCodePoints}) END AS prompt`

const ownColumns = `${taskColumns}, t.trace_id, t.batch_id, t.deleted_at, ${origin}`

/** The columns of a `TaskSummary` in a table named `t`. */
export const summaryColumns = `${ownColumns}, ${prompt}`

const briefColumns = `${ownColumns}, null::text AS prompt`

/** A task in its owner's history. */
export const PastTask = TaskRow.mapFields(withOrigin)
  /** What the vendor of a running task reports, in per cent. */
  .mapFields(Struct.assign({ progress: Schema.NullOr(Schema.Int) }))
  .annotate({ identifier: "PastTask" })
export type PastTask = typeof PastTask.Type

/** The task in a list: without its body, but with the beginning of its prompt. */
export const TaskSummary = PastTask.mapFields(Struct.omit(["body", "progress"]))
  .mapFields(Struct.assign({ prompt: Schema.NullOr(Schema.String) }))
  .annotate({ identifier: "TaskSummary" })
export type TaskSummary = typeof TaskSummary.Type

/** Absent members do not filter. */
export interface TaskFilter {
  readonly ids?: ReadonlyArray<TaskId> | undefined
  readonly batchId?: TaskBatchId | undefined
  /** The prompt and the metadata must contain all of these words, ignoring case. */
  readonly words?: ReadonlyArray<string> | undefined
  /** The name of the array of results. */
  readonly resultKind?: ResultKind | undefined
  readonly status?: TaskStatus | undefined
  readonly apiKeyId?: ApiKeyId | undefined
  readonly model?: string | undefined
  readonly vendor?: string | undefined
  readonly traceId?: string | undefined
  /** The metadata must contain these values under these keys. */
  readonly metadata?: Metadata | undefined
  /** Created at this time or later. */
  readonly since?: DateTime.Utc | undefined
  /** Created before this time. */
  readonly until?: DateTime.Utc | undefined
  /** Bounds of the charge. Unfinished tasks have no charge and never match. */
  readonly minCost?: Credits | undefined
  readonly maxCost?: Credits | undefined
  readonly before?: TaskId | undefined
  readonly limit: number
  /** Omits the prompts, so that no body is read. */
  readonly isBrief?: boolean | undefined
}

/** One paid submit, without the vendor's handle. */
export const AttemptRow = Schema.Struct({
  n: Schema.Int,
  vendor: Schema.String,
  accountId: Schema.String,
  state: Schema.Literals(["submitting", "submitted", "refused", "ambiguous"]),
  /** The class only. The vendor's message is for the operator. */
  failureClass: Schema.NullOr(Schema.String),
  startedAt: Time,
  answeredAt: Schema.NullOr(Time)
})
export type AttemptRow = typeof AttemptRow.Type

/** Tasks and their vendor attempts as the management API shows them. Read-only. */
export class TaskHistoryStore extends Context.Service<TaskHistoryStore>()(
  "gateway/tasks/TaskHistoryStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /** Searches the tasks of one user; `null` searches those of all users. */
      search: search(sql),
      /** The tasks with these ids, in any order. */
      some: (userId: UserId, ids: ReadonlyArray<TaskId>) =>
        sql`
          SELECT ${sql.literal(summaryColumns)} FROM tasks t
          WHERE t.id = ANY (${[...ids]}::uuid[]) AND t.user_id = ${userId}`.pipe(
          rowsOf(TaskSummary),
          storeFailures
        ),
      find: (userId: UserId, id: TaskId) =>
        sql`
          SELECT t.*, ${sql.literal(origin)},
            (SELECT r.progress FROM runs r WHERE r.task_id = t.id) AS progress
          FROM tasks t
          WHERE t.id = ${id} AND t.user_id = ${userId}`.pipe(
          rowsOf(PastTask),
          Effect.map(Array.head),
          storeFailures
        ),
      /** The first response to the create with this idempotency key. */
      answerTo: (userId: UserId, key: string) =>
        sql`SELECT body FROM idempotency_keys WHERE user_id = ${userId} AND key = ${key}`.pipe(
          rowsOf(Schema.Struct({ body: Schema.String })),
          Effect.map((rows) => Option.map(Array.head(rows), ({ body }) => body)),
          storeFailures
        ),
      /** Oldest first. */
      attempts: (id: TaskId) =>
        sql`
          SELECT n, vendor, account_id, state, split_part(failure, ':', 1) AS failure_class,
            started_at, answered_at
          FROM vendor_attempts WHERE task_id = ${id} ORDER BY n`.pipe(
          rowsOf(AttemptRow),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(TaskHistoryStore, TaskHistoryStore.make)
}

/** The last row of a page: only the id of the last task that was scanned. */
const End = Schema.Struct({ id: Schema.String })

/** Greater than or equal to every id. */
const idMax = "ffffffff-ffff-ffff-ffff-ffffffffffff"

function search(sql: PgClient.PgClient) {
  return (userId: UserId | null, filter: TaskFilter) => {
    const { isBrief, limit, since, traceId, until, ...wanted } = filter
    const metadata = Object.keys(filter.metadata ?? {}).length === 0 ? undefined : filter.metadata
    const ends = [wanted.before, ...(until === undefined ? [] : [idOf(until)])]
    const before = ends.filter((id) => id !== undefined).toSorted()[0] ?? idMax
    // One index selects candidates, and the other filters may match few of them. The scan stops when the page is full
    // or after `listScanRowsMax` rows
    const { apiKeyId, batchId, ids, maxCost, minCost, model, resultKind, status, vendor, words } =
      wanted
    const isFiltered =
      (userId === null && model !== undefined) ||
      [
        apiKeyId,
        batchId,
        ids,
        traceId,
        status,
        vendor,
        resultKind,
        minCost,
        maxCost,
        metadata,
        words
      ].some((it) => it !== undefined)
    return sql`
      SELECT ${sql.literal(isBrief === true ? briefColumns : summaryColumns)}
      FROM tasks_search(${userId}::uuid, ${ids === undefined ? null : [...ids]}::uuid[], ${batchId ?? null}::text,
        ${apiKeyId ?? null}::text, ${traceId ?? null}::text,
        ${model ?? null}::text, ${status ?? null}::text, ${vendor ?? null}::text, ${resultKind ?? null}::text,
        ${minCost ?? null}::bigint, ${maxCost ?? null}::bigint,
        ${metadata === undefined ? null : JSON.stringify(metadata)}::text::jsonb,
        ${words === undefined ? null : [...words]}::text[],
        ${since === undefined ? idAt(0) : idOf(since)}::uuid, ${before}::uuid, ${limit}::int,
        ${isFiltered ? listScanRowsMax : limit}::int) WITH ORDINALITY AS t ORDER BY t.ordinality`.pipe(
      Effect.flatMap((found) =>
        Effect.all({
          rows: rowsOf(TaskSummary)(Effect.succeed(found.filter((it) => it["userId"] !== null))),
          ends: rowsOf(End)(Effect.succeed(found.filter((it) => it["userId"] === null)))
        })
      ),
      Effect.map(({ ends, rows }) => ({ rows, end: ends[0]?.id ?? null })),
      storeFailures
    )
  }
}

const idOf = (time: DateTime.Utc) => idAt(DateTime.toEpochMillis(time))
