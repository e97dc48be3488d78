import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import { rowOf, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskRow } from "../../db/TaskRow.ts"
import { TaskId } from "../../domain/Ids.ts"
import { submitTimeout } from "../../vendors/Polling.ts"
import type { AttemptOutcome } from "../TaskStore.ts"

/** A submit whose outcome is unknown. */
const Unsettled = Schema.Struct({
  taskId: TaskId,
  n: Schema.Int,
  startedAt: Time,
  /**
   * When the response was lost. `null`: the submit may still be running. If it is in doubt whether the submit happened,
   * when it had ended at the latest.
   */
  answeredAt: Schema.NullOr(Time),
  /** Whether the submit happened is in doubt. docs/standbys.md#tasks-in-doubt */
  inDoubt: Schema.Boolean
})
export type Unsettled = typeof Unsettled.Type

/** What is known of some jobs from the submits to an account around a time. */
export interface AttemptsAround {
  readonly unsettled: ReadonlyArray<Unsettled>
  /** The jobs that belong to a known task. */
  readonly owned: ReadonlySet<string>
}

/** The outcome of a waiting task's submit, or when to search for its job again. */
export interface Settled {
  readonly taskId: TaskId
  readonly n: number
  /** Absent while the outcome is unknown. */
  readonly outcome?: Pick<AttemptOutcome, "state" | "handle" | "failure">
  /** The queue in which the task continues, and when. */
  readonly queue: string
  readonly dueAt: DateTime.Utc
}

/** Vendor attempts across tasks, for reconciliation. docs/reference/vendors.md#reconciliation */
export class VendorAttemptStore extends Context.Service<VendorAttemptStore>()(
  "gateway/tasks/submission/VendorAttemptStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /**
       * The unsettled submits of the tasks that wait in this queue, the earliest due time first, and of `task`, which
       * is in hand.
       */
      waiting: (of: { readonly queue: string; readonly taskId: TaskId; readonly limit: number }) =>
        sql`
          SELECT a.task_id, a.n, a.started_at, ${overAt(sql)}, length(a.body_hash) = 0 AS in_doubt FROM (
            SELECT task_id, attempt FROM runs WHERE task_id = ${of.taskId}
            UNION ALL (
              SELECT task_id, attempt FROM runs WHERE queue = ${of.queue} AND owner IS NULL
              ORDER BY due_at, task_id LIMIT ${of.limit}
            )
          ) r
          CROSS JOIN LATERAL (
            SELECT * FROM vendor_attempts v WHERE v.task_id = r.task_id AND v.n = r.attempt OFFSET 0
          ) a WHERE a.state = 'submitting'`.pipe(rowsOf(Unsettled), storeFailures),
      around: (of: {
        readonly accountId: string
        readonly from: DateTime.Utc
        readonly until: DateTime.Utc
        readonly jobIds: ReadonlyArray<string>
      }) =>
        sql`
          SELECT a.task_id, a.n, a.state, a.started_at, ${overAt(sql)}, length(a.body_hash) = 0 AS in_doubt, j.ids
          FROM vendor_attempts a CROSS JOIN LATERAL (
            SELECT array_agg(h.value) AS ids FROM jsonb_each_text(a.handle) h
            WHERE h.value = ANY (${[...of.jobIds]})
          ) j
          WHERE a.started_at BETWEEN ${toDate(of.from)} AND ${toDate(of.until)}
            AND a.account_id = ${of.accountId} AND a.state <> 'refused'
            AND (a.state <> 'submitted' OR j.ids IS NOT NULL)
          UNION ALL
          SELECT r.task_id, r.attempt, 'doubt', t.created_at, NULL, true, NULL
          FROM runs r CROSS JOIN LATERAL (SELECT * FROM tasks WHERE id = r.task_id OFFSET 0) t
          WHERE r.in_doubt AND t.created_at <= ${toDate(of.until)} AND NOT EXISTS (
            SELECT FROM vendor_attempts v
            WHERE v.task_id = r.task_id AND length(v.body_hash) = 0
              AND (v.account_id = ${of.accountId} OR v.state = 'submitting')
          )`.pipe(
          rowsOf(Around),
          Effect.map((rows): AttemptsAround => ({
            unsettled: rows.filter(({ state }) => state !== "submitted"),
            owned: new Set(rows.flatMap(({ ids }) => ids ?? []))
          })),
          storeFailures
        ),
      ...searchRecords(sql),
      tasks: (ids: ReadonlyArray<TaskId>) =>
        sql`SELECT * FROM tasks WHERE id = ANY (${[...ids]}::uuid[])`.pipe(
          rowsOf(TaskRow),
          storeFailures
        ),
      /**
       * Settles submits in one transaction, each only if its task still waits in the queue or is the task in hand with
       * this epoch. `false`: the task in hand is fenced.
       */
      settle: (of: {
        readonly queue: string
        readonly taskId: TaskId
        readonly epoch: number
        readonly settled: ReadonlyArray<Settled>
        readonly now: DateTime.Utc
      }) =>
        sql`
          SELECT task_id FROM attempts_settle(
            ${of.queue}, ${of.taskId}, ${of.epoch}, ${sql.json(of.settled.map(settleCall))}, ${toDate(of.now)})`.pipe(
          rowsOf(Schema.Struct({ taskId: TaskId })),
          Effect.map((rows) => rows.some((row) => row.taskId === of.taskId)),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(VendorAttemptStore, VendorAttemptStore.make)
}

/** A submit that the store lost may have been sent right before the store was marked as restored. */
const overAt = (sql: PgClient.PgClient) =>
  sql`CASE WHEN length(a.body_hash) > 0 THEN a.answered_at ELSE greatest(
    a.answered_at,
    (SELECT max(restored_at) FROM store_marks) + make_interval(secs => ${Duration.toSeconds(submitTimeout)})
  ) END AS answered_at`

/** The records of searches for the jobs of tasks in doubt. */
const searchRecords = (sql: PgClient.PgClient) => ({
  /** Begins the search at an account for the submit of a task in doubt. `false`: the task is fenced. */
  beginSearch: (search: {
    readonly taskId: TaskId
    readonly epoch: number
    readonly n: number
    readonly vendor: string
    readonly accountId: string
  }) =>
    sql`
      SELECT * FROM task_search_begin(
        ${search.taskId}, ${search.epoch}, ${search.n}, ${search.vendor}, ${search.accountId})`.pipe(
      Effect.map((rows) => rows.length > 0),
      storeFailures
    ),
  /** The accounts that are known to have no submit of this task that the store lost. */
  searched: (id: TaskId) =>
    sql`
      SELECT account_id FROM vendor_attempts
      WHERE task_id = ${id} AND length(body_hash) = 0 AND state = 'refused'`.pipe(
      rowsOf(Schema.Struct({ accountId: Schema.String })),
      Effect.map((rows) => new Set(rows.map(({ accountId }) => accountId))),
      storeFailures
    ),
  /** When the store was last marked as restored. Its records of submits before then may be incomplete. */
  restoredAt: sql`SELECT max(restored_at) AS at FROM store_marks`.pipe(
    rowOf(Schema.Struct({ at: Schema.NullOr(Time) })),
    Effect.map(({ at }) => Option.fromNullOr(at)),
    storeFailures
  )
})

const Around = Schema.Struct({
  ...Unsettled.fields,
  state: Schema.String,
  ids: Schema.NullOr(Schema.Array(Schema.String))
})

const settleCall = ({ dueAt, n, outcome, queue, taskId }: Settled) => ({
  task: taskId,
  attempt: n,
  queue,
  due: DateTime.formatIso(dueAt),
  state: outcome?.state ?? null,
  handle: outcome?.handle ?? null,
  failure: outcome?.failure ?? null
})
