import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Option, Schema } from "effect"
import { Batcher } from "../../db/Batcher.ts"
import {
  groupCommit,
  hex,
  outcomes,
  publishAlert,
  publishEvent,
  retryDeadlock
} from "../../db/BatchWrites.ts"
import { Micro, rowsOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { EndpointId, TaskBatchId, UserId } from "../../domain/Ids.ts"
import { taskBatchCompleted } from "../../webhooks/Events.ts"
import { findBatch } from "../batches/TaskBatchStore.ts"
import type { Finish, FinishOutcome } from "../TaskStore.ts"

const Row = Schema.Struct({
  n: Schema.Int,
  userId: UserId,
  alert: Schema.Boolean,
  available: Micro,
  threshold: Micro,
  endpoints: Schema.Array(EndpointId),
  /** The batch whose last task is this one, if the batch has ended. Tasks that end together share a statement. */
  batch: Schema.NullOr(TaskBatchId)
})

/** Implements `TaskStore.finish`. Tasks that end at the same time share a commit. */
export const makeFinish = (sql: PgClient.PgClient) =>
  Batcher.make({
    ...groupCommit,
    run: (finishes: ReadonlyArray<Finish>) =>
      sql`SELECT * FROM task_finish_many(${sql.json(finishes.map(toCall))})`.pipe(
        rowsOf(Row),
        Effect.flatMap(Effect.forEach((row) => withAlert(sql, row, finishes[row.n]))),
        Effect.flatMap((rows) => withBatchEnds(sql, rows, finishes)),
        Effect.map((rows) => outcomes(finishes, rows, outcomeOf)),
        sql.withTransaction,
        retryDeadlock,
        storeFailures
      )
  }).pipe(Effect.map(({ call }) => call))

const toCall = (f: Finish, n: number) => ({
  n,
  task: f.taskId,
  epoch: Option.getOrNull(f.epoch),
  ...(f.outcome.status === "completed"
    ? {
        status: "completed",
        result: f.outcome.result,
        captured: String(f.outcome.captured),
        usage: f.outcome.usage
      }
    : {
        status: "failed",
        error: f.outcome.error,
        captured: String(f.outcome.charge?.captured ?? 0n),
        usage: f.outcome.charge?.usage
      }),
  event: f.event.id,
  event_body: hex(f.event.body),
  event_openai: f.event.openai,
  throttle: f.throttleSeconds,
  now: DateTime.formatIso(f.now)
})

/** The row, with the endpoints of the `balance.low` event if the charge crossed the threshold. */
const withAlert = (sql: PgClient.PgClient, row: typeof Row.Type, f: Finish | undefined) =>
  row.alert && f !== undefined
    ? Effect.map(publishAlert(sql, row.userId, f.alert(row), f.now), (endpoints) => ({
        ...row,
        endpoints: [...row.endpoints, ...endpoints]
      }))
    : Effect.succeed(row)

/** The rows, with the endpoints of the `task_batch.completed` events of batches that have ended. */
const withBatchEnds = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  rows: ReadonlyArray<typeof Row.Type>,
  finishes: ReadonlyArray<Finish>
) {
  // The last row of each batch, because the batch's event follows that task's ledger entry
  const ends = new Map(rows.flatMap((row) => (row.batch === null ? [] : [[row.batch, row]])))
  const published = yield* Effect.forEach(
    ends,
    Effect.fnUntraced(function* ([batch, { n, userId }]) {
      const finish = finishes[n]
      const found = yield* findBatch(sql, userId, batch)
      if (finish === undefined || Option.isNone(found)) return []
      const { now, taskId } = finish
      const event = taskBatchCompleted(userId, found.value, now)
      return yield* publishEvent(sql, { type: "task_batch.completed", userId, taskId, event, now })
    })
  )
  const endpoints = published.flat()
  return rows.map((row) =>
    row.batch === null ? row : { ...row, endpoints: [...row.endpoints, ...endpoints] }
  )
})

const outcomeOf = (row: typeof Row.Type | undefined): FinishOutcome =>
  row === undefined ? { _tag: "Fenced" } : { _tag: "Finished", endpoints: row.endpoints }
