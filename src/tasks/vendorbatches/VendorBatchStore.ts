import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { retryDeadlock } from "../../db/BatchWrites.ts"
import { amounts, integers, texts } from "../../db/Columns.ts"
import { when } from "../../db/ListScan.ts"
import { Micro, rowOf, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskRow } from "../../db/TaskRow.ts"
import type * as Credits from "../../domain/Credits.ts"
import { FileId } from "../../domain/Ids.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import type { BatchProgress, BatchResult } from "../../vendors/VendorClient.ts"
import type { TaskUsage } from "../TaskStore.ts"

/** What one request of a batch is charged. */
export interface BatchReceipt {
  /** Identifies the request: a prefix of the SHA-256 of its `custom_id`. */
  readonly digest: string
  readonly customId: string
  /** The model name that the request used. */
  readonly model: string
  readonly outcome: "settled" | "released"
  readonly status: number | null
  readonly cost: Credits.Credits
  readonly usage: TaskUsage | null
  readonly requestId: string | null
}

/** A task in hand, with the epoch of its owner. */
export interface InHand {
  readonly task: Pick<TaskRow, "id" | "userId">
  readonly epoch: number
}

const State = Schema.Struct({
  batchStatus: Schema.NullOr(
    Schema.Literals([
      "validating",
      "in_progress",
      "finalizing",
      "cancelling",
      "completed",
      "expired",
      "cancelled"
    ])
  ),
  completed: Schema.NullOr(Schema.Int),
  failed: Schema.NullOr(Schema.Int),
  cancellingAt: Schema.NullOr(Time),
  outputFile: Schema.NullOr(FileId),
  errorFile: Schema.NullOr(FileId),
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))
})

/** A task with the batch's state as reported by the vendor. */
export const VendorBatchRow = Schema.Struct({ ...TaskRow.fields, ...State.fields })
export type VendorBatchRow = typeof VendorBatchRow.Type

const ReceiptRow = Schema.Struct({
  digest: Schema.String,
  customId: Schema.NullOr(Schema.String),
  model: Schema.String,
  outcome: Schema.Literals(["settled", "released"]),
  httpStatus: Schema.NullOr(Schema.Int),
  captured: Micro,
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  requestId: Schema.NullOr(Schema.String),
  createdAt: Time
})
export type ReceiptRow = typeof ReceiptRow.Type

/** Newest first, or oldest first with `isAscending`. */
export interface BatchPage {
  readonly vendor: string
  /** The page starts after this batch, in the page's order. */
  readonly after: TaskId | undefined
  readonly isAscending?: boolean
  readonly limit: number
}

export interface ReceiptPage {
  readonly after: string | undefined
  readonly limit: number
}

const Sum = Schema.Struct({
  model: Schema.String,
  captured: Micro,
  settled: Schema.Int,
  released: Schema.Int,
  input: Schema.Finite,
  cached: Schema.Finite,
  written: Schema.Finite,
  output: Schema.Finite,
  reasoning: Schema.Finite,
  counted: Schema.Boolean
})
export type ReceiptSum = typeof Sum.Type

/**
 * Vendors' batches, each of which runs for one task, and the receipts of their requests.
 * docs/reference/vendor-batches.md
 */
export class VendorBatchStore extends Context.Service<VendorBatchStore>()(
  "gateway/tasks/VendorBatchStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({ ...reads(sql), ...writes(sql) }))
  }
) {
  static readonly layer = Layer.effect(VendorBatchStore, VendorBatchStore.make)
}

const columns = `t.*, b.status AS batch_status, b.completed, b.failed, b.cancelling_at, b.output_file, b.error_file`

const shown = (sql: PgClient.PgClient, userId: UserId, vendor: string) => [
  sql`t.user_id = ${userId}`,
  sql`t.result_kind = 'batches'`,
  sql`t.vendor = ${vendor}`,
  sql`t.deleted_at IS NULL`
]

function reads(sql: PgClient.PgClient) {
  return {
    find: ({ id, userId, vendor }: { userId: UserId; vendor: string; id: TaskId }) =>
      sql`
        SELECT ${sql.literal(columns)} FROM tasks t LEFT JOIN vendor_batches b ON b.task_id = t.id
        WHERE t.id = ${id} AND ${sql.and(shown(sql, userId, vendor))}`.pipe(
        rowsOf(VendorBatchRow),
        Effect.map(Array.head),
        storeFailures
      ),
    list: (userId: UserId, { after, isAscending = false, limit, vendor }: BatchPage) =>
      sql`
        SELECT ${sql.literal(columns)} FROM tasks t LEFT JOIN vendor_batches b ON b.task_id = t.id
        WHERE ${sql.and([
          ...shown(sql, userId, vendor),
          ...when(after, (it) => (isAscending ? sql`t.id > ${it}` : sql`t.id < ${it}`))
        ])}
        ORDER BY t.id ${sql.literal(isAscending ? "ASC" : "DESC")} LIMIT ${limit}`.pipe(
        rowsOf(VendorBatchRow),
        storeFailures
      ),
    /** Ordered by digest. */
    receipts: ({ id, userId }: InHand["task"], { after = "", limit }: ReceiptPage) =>
      sql`
        SELECT split_part(b.id, '.', 2) AS digest, b.custom_id, b.model, b.outcome, b.http_status, b.captured,
          b.usage, b.request_id, b.created_at
        FROM batch_receipts b
        WHERE b.user_id = ${userId} AND b.id > ${`${id}.${after}`} AND b.id < ${`${id}/`}
        ORDER BY b.id LIMIT ${limit}`.pipe(rowsOf(ReceiptRow), storeFailures),
    /** The sums of the receipts, by model. */
    sumReceipts: ({ id, userId }: InHand["task"]) =>
      sql`SELECT * FROM batch_receipts_sum(${userId}::uuid, ${id}::uuid)`.pipe(
        rowsOf(Sum),
        storeFailures
      )
  }
}

const Charged = Schema.Struct({ charged: Schema.NullOr(Micro) })

function writes(sql: PgClient.PgClient) {
  return {
    /** Records the progress that the vendor reports. */
    note: (
      { epoch, id }: { id: TaskId; epoch: number },
      { completed, failed, status }: BatchProgress
    ) =>
      sql`
        SELECT vendor_batch_note(
          ${id}::uuid, ${epoch}::int, ${status}, ${completed}::int, ${failed}::int)`.pipe(
        Effect.asVoid,
        storeFailures
      ),
    /** Hides a batch that has ended from its user. */
    delete: (userId: UserId, id: TaskId, now: DateTime.Utc) =>
      sql`
        UPDATE tasks t SET deleted_at = ${toDate(now)}
        WHERE t.id = ${id} AND t.user_id = ${userId} AND t.result_kind = 'batches' AND t.deleted_at IS NULL
          AND t.status IN ('completed', 'failed')`.pipe(Effect.asVoid, storeFailures),
    noteCancelling: (id: TaskId, now: DateTime.Utc) =>
      sql`
        INSERT INTO vendor_batches AS b (task_id, status, cancelling_at) VALUES (${id}, 'cancelling', ${toDate(now)})
        ON CONFLICT (task_id) DO UPDATE
          SET status = 'cancelling', cancelling_at = coalesce(b.cancelling_at, excluded.cancelling_at)`.pipe(
        Effect.asVoid,
        storeFailures
      ),
    /** Records the batch's outcome and files before its task ends. */
    noteEnd: (
      { epoch, task }: InHand,
      { completed, failed, status }: Pick<BatchResult, "status" | "completed" | "failed">,
      { errors, output }: { output: FileId | null; errors: FileId | null }
    ) =>
      sql`
        INSERT INTO vendor_batches AS b (task_id, status, completed, failed, output_file, error_file)
        SELECT r.task_id, ${status}, ${completed}::int, ${failed}::int, ${output}::text, ${errors}::text FROM runs r
          WHERE r.task_id = ${task.id} AND r.epoch = ${epoch} AND r.owner IS NOT NULL
        ON CONFLICT (task_id) DO UPDATE
          SET status = excluded.status, completed = excluded.completed, failed = excluded.failed,
            output_file = excluded.output_file, error_file = excluded.error_file`.pipe(
        Effect.asVoid,
        storeFailures
      ),
    /**
     * Writes receipts for requests that have none yet, charging at most `left` in total, and returns the amount
     * charged. `None`: the task is fenced.
     */
    addReceipts: (
      { epoch, task }: InHand,
      left: Credits.Credits,
      receipts: ReadonlyArray<BatchReceipt>,
      now: DateTime.Utc
    ) =>
      sql`
        SELECT batch_receipts_add(
          ${task.id}::uuid, ${epoch}::int, ${task.userId}::uuid, ${String(left)}::bigint,
          ${texts(receipts, (it) => `${task.id}.${it.digest}`)}, ${texts(receipts, (it) => it.customId)},
          ${texts(receipts, (it) => it.model)}, ${texts(receipts, (it) => it.outcome)},
          ${integers(receipts, (it) => it.status)}, ${amounts(receipts, (it) => it.cost)},
          ${texts(receipts, (it) => (it.usage === null ? null : JSON.stringify(it.usage)))},
          ${texts(receipts, (it) => it.requestId)}, ${toDate(now)}::timestamptz) AS charged`.pipe(
        rowOf(Charged),
        Effect.map(({ charged }) => Option.fromNullOr(charged)),
        retryDeadlock,
        storeFailures
      )
  }
}
