import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { taskColumns, TaskRow } from "../db/TaskRow.ts"
import { Handle } from "../vendors/VendorClient.ts"
import { taskLevel } from "./TaskStore.ts"
import type { Claim, OwnedTask, TaskStore } from "./TaskStore.ts"

const QueueRow = Schema.Struct({ queue: Schema.String, dueAt: Time })

const ClaimedRow = Schema.Struct({
  ...TaskRow.fields,
  epoch: Schema.Int,
  deadlineAt: Time,
  startsAt: Time,
  slotHeld: Schema.Boolean,
  waitedFor: Schema.NullOr(Schema.String),
  inputs: Schema.NullOr(Schema.Record(Schema.String, Schema.String)),
  n: Schema.NullOr(Schema.Int),
  attemptState: Schema.NullOr(Schema.Literals(["submitting", "submitted", "refused", "ambiguous"])),
  accountId: Schema.NullOr(Schema.String),
  attemptStartedAt: Schema.NullOr(Time),
  handle: Schema.NullOr(Handle),
  attemptFailure: Schema.NullOr(Schema.String)
})
type ClaimedRow = typeof ClaimedRow.Type

const ownedTask = (queue: string, row: ClaimedRow): OwnedTask => ({
  task: row,
  epoch: row.epoch,
  deadlineAt: row.deadlineAt,
  queue,
  startsAt: row.startsAt,
  accountId: row.waitedFor,
  slotHeld: row.slotHeld,
  inputs: row.inputs ?? {},
  attempt:
    row.n === null ||
    row.attemptState === null ||
    row.accountId === null ||
    row.attemptStartedAt === null
      ? Option.none()
      : Option.some({
          n: row.n,
          state: row.attemptState,
          accountId: row.accountId,
          startedAt: row.attemptStartedAt,
          handle: row.handle,
          failure: row.attemptFailure
        })
})

const decodeRow = Schema.decodeUnknownEffect(ClaimedRow)
const idOf = (row: unknown) => Option.map(decodeId(row), ({ id }) => id)
const decodeId = Schema.decodeUnknownOption(Schema.Struct({ id: Schema.String }))
const decodeRows = Schema.decodeUnknownEffect(Schema.Array(ClaimedRow))

/**
 * A row that this program cannot read, such as one of a newer release, keeps no other task waiting. Its task
 * has no run here, so it is released, and due again, a reconciliation later.
 */
const readable = (rows: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<ClaimedRow>> =>
  Effect.catch(decodeRows(rows), () =>
    Effect.map(
      Effect.forEach(rows, (row) =>
        Effect.catch(Effect.asSome(decodeRow(row)), ({ message }) =>
          Effect.logError("A due task cannot be read").pipe(
            Effect.annotateLogs({ task: Option.getOrNull(idOf(row)), fault: message }),
            Effect.as(Option.none())
          )
        )
      ),
      Array.getSomes
    )
  )

/** Claims of due tasks. `schema/functions/tasks.sql` */
export const claims = (sql: PgClient.PgClient): Pick<TaskStore["Service"], "claim" | "queues"> => ({
  queues: (now: DateTime.Utc) =>
    sql`SELECT * FROM task_queues_known(${toDate(now)}, ${taskLevel})`.pipe(
      rowsOf(QueueRow),
      storeFailures
    ),
  // An index lookup for each, whatever the statistics say. A poll needs of the body only how many results
  // were ordered.
  claim: ({ limit, now, owner, queue }: Claim) =>
    sql`
      SELECT ${sql.literal(taskColumns)}, t.trace_id,
        CASE WHEN c.attempt_state = 'submitted' THEN jsonb_build_object('n', t.body -> 'n') ELSE t.body END AS body,
        c.epoch, c.deadline_at, c.starts_at, c.slot_held, c.waited_for, c.inputs, c.n, c.attempt_state, c.account_id,
        c.attempt_started_at, c.handle, c.attempt_failure
      FROM task_claim_known(${queue}, ${limit}, ${owner}, ${toDate(now)}, ${taskLevel}) c
      CROSS JOIN LATERAL (SELECT * FROM tasks WHERE id = c.task_id OFFSET 0) t`.pipe(
      Effect.flatMap(readable),
      Effect.map((rows) => rows.map((row) => ownedTask(queue, row))),
      storeFailures
    )
})
