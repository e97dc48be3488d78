import { DateTime, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { ReceiptKey } from "../../../contract/TasksApi.ts"
import * as Credits from "../../../domain/Credits.ts"
import { TaskId } from "../../../domain/Ids.ts"
import { modelAt, skippedOf } from "../../../domain/task/Candidate.ts"
import type { Metadata } from "../../../domain/task/Metadata.ts"
import { isTerminal } from "../../../domain/task/Task.ts"
import { previewOf } from "../../../tasks/history/Preview.ts"
import { TaskHistory } from "../../../tasks/history/TaskHistory.ts"
import type { AttemptRow, History, TaskSummary } from "../../../tasks/history/TaskHistory.ts"
import { VendorBatches } from "../../../tasks/vendorbatches/VendorBatches.ts"
import type { ReceiptRow } from "../../../tasks/vendorbatches/VendorBatches.ts"
import type { TaskDeliveryRow } from "../../../webhooks/Deliveries.ts"
import { requireReader } from "../../server/access/Authentication.ts"
import { readPage, toPage } from "../Paging.ts"
import { showEntry } from "../wallet/WalletHandlers.ts"

/** A user's own tasks. */
export const layer = HttpApiBuilder.group(
  Api,
  "tasks",
  Effect.fnUntraced(function* (handlers) {
    const tasks = yield* TaskHistory
    const batches = yield* VendorBatches
    return handlers.handleAll({
      listTasks: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, TaskId)
        const { end, rows } = yield* tasks.search(userId, {
          before: Option.getOrUndefined(before),
          limit: limit + 1,
          text: query.q,
          resultKind: query.result_kind,
          status: query.status,
          apiKeyId: query.api_key_id,
          model: query.model,
          vendor: query.vendor,
          traceId: query.trace_id,
          since: query.since,
          until: query.until,
          minCost: query.min_cost,
          maxCost: query.max_cost,
          metadata: metadataOf(query)
        })
        return yield* toPage(rows, limit, (row) => row.id, showListed(yield* DateTime.now), end)
      }),
      getTask: Effect.fnUntraced(function* ({ params, query }) {
        return showHistory(yield* tasks.get(yield* requireReader(query), params.id))
      }),
      listTaskReceipts: Effect.fnUntraced(function* ({ params, query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, ReceiptKey)
        const rows = yield* batches.receipts(userId, params.id, {
          after: Option.getOrUndefined(before),
          limit: limit + 1
        })
        return yield* toPage(rows, limit, (row) => row.digest, showReceipt)
      })
    })
  })
)

const showReceipt = (row: ReceiptRow) => ({
  custom_id: row.customId,
  model: row.model,
  outcome: row.outcome,
  http_status: row.httpStatus,
  cost: row.captured,
  usage: row.usage,
  request_id: row.requestId,
  created_at: row.createdAt
})

/** The fields that a task has both in a list and on its own. */
type Task = Omit<TaskSummary, "prompt">

const metadataName = /^metadata\[(.*)\]$/su

const metadataOf = (query: object): Metadata =>
  Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => {
      const key = metadataName.exec(name)?.[1]
      return key === undefined ? [] : [[key, String(value)]]
    })
  )

/** Which model of an alias made the result, and why the others did not. */
const doneBy = (task: Task) => {
  const { model, vendor } = modelAt(task)
  const skipped = skippedOf(task).map(({ model, reason, vendor }) => ({ vendor, model, reason }))
  return { vendor, model, skipped }
}

/** The price is held until the task ends; then it is captured, released, or partly both. */
const receiptOf = (task: Task) => {
  const { captured, price, status } = task
  const ended = isTerminal(status)
  const charged = captured ?? Credits.zero
  return {
    held: ended ? Credits.zero : price,
    captured: charged,
    released: ended ? Credits.make(price - charged) : Credits.zero,
    currency: "credits" as const,
    ...(task.candidates === null ? {} : doneBy(task))
  }
}

/** A task as a list item. */
export const showListed = (now: DateTime.Utc) => (task: TaskSummary) => ({
  ...showTask(task),
  ...(task.prompt === null ? {} : { prompt: task.prompt }),
  ...Option.match(previewOf(task, now), {
    onNone: () => ({}),
    onSome: ({ count, expiresAt, kind, url }) => ({
      preview: { kind, url, expires_at: expiresAt, count }
    })
  })
})

export const showTask = (task: Task) => ({
  id: task.id,
  vendor: task.vendor,
  model: task.model,
  action: task.action,
  status: task.status,
  error: task.error,
  sandbox: task.sandbox,
  receipt: receiptOf(task),
  catalog: task.catalog,
  key_name: task.keyName,
  trace_id: task.traceId,
  created_at: task.createdAt,
  started_at: task.startedAt,
  ended_at: isTerminal(task.status) ? task.updatedAt : null,
  ...(task.metadata === null ? {} : { metadata: task.metadata }),
  ...(task.batchId === null ? {} : { batch_id: task.batchId })
})

/** The changes of state. A task may end without having been `processing`. docs/reference/tasks.md#states */
const movesOf = ({ createdAt, startedAt, status, traceId, updatedAt }: Task) => [
  { status: "pending" as const, at: createdAt, trace_id: traceId },
  ...(startedAt === null
    ? []
    : [{ status: "processing" as const, at: startedAt, trace_id: traceId }]),
  ...(isTerminal(status) ? [{ status, at: updatedAt, trace_id: traceId }] : [])
]

const showAttempt = (row: AttemptRow) => ({
  n: row.n,
  vendor: row.vendor,
  account_id: row.accountId,
  state: row.state,
  failure_class: row.failureClass,
  started_at: row.startedAt,
  answered_at: row.answeredAt
})

const showDelivery = (rows: ReadonlyArray<TaskDeliveryRow>, first: TaskDeliveryRow) => ({
  id: first.id,
  endpoint_id: first.endpointId,
  webhook_url: first.webhookUrl,
  event_id: first.eventId,
  type: first.eventType,
  status: first.status,
  trace_id: first.traceId,
  created_at: first.createdAt,
  updated_at: first.updatedAt,
  attempts: rows.flatMap((row) =>
    row.seq === null
      ? []
      : [
          {
            seq: row.seq,
            due_at: row.dueAt,
            started_at: row.startedAt,
            ended_at: row.endedAt,
            status: row.httpStatus,
            failure: row.failure
          }
        ]
  )
})

const showHistory = ({ attempts, deliveries, entries, inputs, task }: History) => ({
  ...showTask(task),
  body: task.body,
  inputs: inputs.map(({ artifact, pointer, url }) => ({
    pointer,
    media_type: artifact.mime,
    size: Number(artifact.bytes),
    url,
    expires_at: artifact.expiresAt
  })),
  result_kind: task.resultKind,
  result: task.result,
  ...(task.progress === null ? {} : { progress: task.progress }),
  ...(task.candidates === null ? {} : { candidates: task.candidates }),
  moves: movesOf(task),
  attempts: attempts.map(showAttempt),
  entries: entries.map(showEntry),
  deliveries: [...Map.groupBy(deliveries, (row) => row.id).values()].flatMap((rows) =>
    rows[0] === undefined ? [] : [showDelivery(rows, rows[0])]
  )
})
