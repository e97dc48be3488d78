import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Option, Schema } from "effect"
import { Batcher } from "../../db/Batcher.ts"
import { groupCommit, hex, outcomes, publishAlert, retryDeadlock } from "../../db/BatchWrites.ts"
import { Micro, rowsOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { EndpointId, UserId } from "../../domain/Ids.ts"
import type { Finish, FinishOutcome } from "../TaskStore.ts"

const Row = Schema.Struct({
  n: Schema.Int,
  userId: UserId,
  alert: Schema.Boolean,
  available: Micro,
  threshold: Micro,
  endpoints: Schema.Array(EndpointId)
})

/** `TaskStore.finish`: tasks that end together are committed together. */
export const makeFinish = (sql: PgClient.PgClient) =>
  Batcher.make({
    ...groupCommit,
    run: (finishes: ReadonlyArray<Finish>) =>
      sql`SELECT * FROM task_finish_many(${sql.json(finishes.map(toCall))})`.pipe(
        rowsOf(Row),
        Effect.flatMap(Effect.forEach((row) => withAlert(sql, row, finishes[row.n]))),
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
    ? { status: "completed", result: f.outcome.result, captured: String(f.outcome.captured) }
    : { status: "failed", error: f.outcome.error, captured: "0" }),
  event: f.event.id,
  event_body: hex(f.event.body),
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

const outcomeOf = (row: typeof Row.Type | undefined): FinishOutcome =>
  row === undefined ? { _tag: "Fenced" } : { _tag: "Finished", endpoints: row.endpoints }
