import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Option, Schema, String, Struct } from "effect"
import type { DateTime } from "effect"
import { Batcher } from "../../db/Batcher.ts"
import { groupCommit } from "../../db/BatchWrites.ts"
import { rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { taskColumns, TaskRow } from "../../db/TaskRow.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { Handle } from "../../vendors/VendorClient.ts"
import type { Claim, TaskStore } from "../TaskStore.ts"
import { polledFields } from "./OwnedTask.ts"
import type { Owned, OwnedJob, OwnedTask } from "./OwnedTask.ts"

const QueueRow = Schema.Struct({ queue: Schema.String, dueAt: Time })

/** The columns of `task_claim` about a run and its newest attempt. */
const runFields = {
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
  attemptFailure: Schema.NullOr(Schema.String),
  inDoubt: Schema.Boolean
}

const ClaimedRow = Schema.Struct({ ...TaskRow.fields, ...runFields })
type ClaimedRow = typeof ClaimedRow.Type

/** The whole row of a task that has no job yet, as one column. */
const WholeRow = Schema.Struct({ whole: Schema.toCodecJson(ClaimedRow) })

const JobRow = Schema.Struct({
  ...Struct.pick(TaskRow.fields, polledFields),
  ...Struct.pick(runFields, ["epoch", "deadlineAt", "startsAt"]),
  accountId: Schema.String,
  handle: Handle
})
type JobRow = typeof JobRow.Type

const ownedTask = (queue: string, row: ClaimedRow): OwnedTask => ({
  task: row,
  epoch: row.epoch,
  deadlineAt: row.deadlineAt,
  queue,
  startsAt: row.startsAt,
  accountId: row.waitedFor,
  slotHeld: row.slotHeld,
  inputs: row.inputs ?? {},
  inDoubt: row.inDoubt,
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
          failure: row.attemptFailure
        })
})

const ownedJob = (queue: string, row: JobRow): OwnedJob => ({
  task: row,
  epoch: row.epoch,
  deadlineAt: row.deadlineAt,
  queue,
  startsAt: row.startsAt,
  job: row
})

const idOf = (row: unknown) => Option.map(decodeId(row), ({ id }) => id)
const decodeId = Schema.decodeUnknownOption(Schema.Struct({ id: Schema.String }))

/**
 * Decodes rows. A row that this release cannot read, such as one of a newer release, does not block other tasks: its
 * task has no run here, so the next reconciliation releases it.
 */
const readableOf = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decodeRows = Schema.decodeUnknownEffect(Schema.Array(schema))
  const decodeRow = Schema.decodeUnknownEffect(schema)
  return (rows: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<S["Type"]>> =>
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
}
const readableTasks = readableOf(WholeRow)
const readableJobs = readableOf(JobRow)
const readableRows = readableOf(TaskRow)

/** Aliases each column to its field's name, because the driver would copy each row to rename its columns. */
const columns = (table: string, fields: ReadonlyArray<string>): string =>
  fields.map((field) => `${columnOf(table, field)} AS "${field}"`).join(", ")

const columnOf = (table: string, field: string): string => `${table}.${String.camelToSnake(field)}`

/** Selects `bigint` members as text, because JSON carries them as strings. */
const members = (table: string, fields: object): ReadonlyArray<string> =>
  Object.keys(fields).map((field) => {
    const cast = field === "price" || field === "captured" ? "::text" : ""
    return `'${field}', ${columnOf(table, field)}${cast}`
  })

/**
 * `c` is the claim, `t` the task. The fields that only a task without a job needs are packed into one column, because
 * the driver spends time on every null column of every row.
 */
const claimedColumns = [
  columns("t", polledFields),
  columns("c", ["epoch", "deadlineAt", "startsAt", "accountId", "handle"]),
  `CASE WHEN (c.attempt_state = 'submitted' AND c.handle IS NOT NULL) IS NOT TRUE THEN
    json_build_object(${[...members("t", TaskRow.fields), ...members("c", runFields)].join(", ")}) END AS whole`
].join(", ")

/** Claims of due tasks. `schema/functions/tasks.sql` */
export const makeClaims = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const jobs = yield* Batcher.make({
    ...groupCommit,
    run: (asked: ReadonlyArray<{ readonly id: TaskId; readonly isWhole: boolean }>) =>
      sql`
        SELECT ${sql.literal(taskColumns)}, t.trace_id,
          CASE WHEN c.whole THEN t.body ELSE jsonb_build_object('n', t.body -> 'n') END AS body
        FROM unnest(${asked.map(({ id }) => id)}::uuid[], ${asked.map(({ isWhole }) => isWhole)}::boolean[]) c (id, whole)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE id = c.id OFFSET 0) t`.pipe(
        Effect.flatMap(readableRows),
        Effect.map((rows) => new Map(rows.map((row) => [row.id, row]))),
        Effect.map((byId) => asked.map(({ id }) => Option.fromUndefinedOr(byId.get(id)))),
        storeFailures
      )
  })
  return {
    ofJob: (id, isWhole = false) => jobs.call({ id, isWhole }),
    queues: (now: DateTime.Utc) =>
      sql`SELECT * FROM task_queues(${toDate(now)})`.pipe(rowsOf(QueueRow), storeFailures),
    // Forces an index lookup per queue, whatever the planner's statistics say
    claim: ({ limit, now, owner, queue, share }: Claim) =>
      sql`
        SELECT ${sql.literal(claimedColumns)}
        FROM task_claim(
          ${queue}, ${limit}, ${owner}, ${toDate(now)}, ${share?.tasks ?? null}::uuid[],
          ${share === undefined ? null : toDate(share.aliveSince)}::timestamptz) c
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE id = c.task_id OFFSET 0) t`.withoutTransform.pipe(
        Effect.flatMap((rows) => {
          const jobs = rows.filter(({ whole }) => whole === null)
          const others = rows.filter(({ whole }) => whole !== null)
          return Effect.all([readableJobs(jobs), readableTasks(others)])
        }),
        Effect.map(([jobs, others]): ReadonlyArray<Owned> => {
          const claimed: ReadonlyArray<Owned> = jobs.map((row) => ownedJob(queue, row))
          return claimed.concat(others.map(({ whole }) => ownedTask(queue, whole)))
        }),
        storeFailures
      )
  } satisfies Partial<TaskStore["Service"]>
})
