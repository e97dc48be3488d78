import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import { rowOf, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskRow } from "../../db/TaskRow.ts"
import { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
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
export class VendorAttemptStore extends Context.Service<
  VendorAttemptStore,
  {
    /**
     * The unsettled submits of the tasks that wait in this queue, the earliest due time first, and of `task`, which is
     * in hand.
     */
    readonly waiting: (of: {
      readonly queue: string
      readonly taskId: TaskId
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<Unsettled>, StoreUnavailable>
    readonly around: (of: {
      readonly accountId: string
      readonly from: DateTime.Utc
      readonly until: DateTime.Utc
      readonly jobIds: ReadonlyArray<string>
    }) => Effect.Effect<AttemptsAround, StoreUnavailable>
    /** Begins the search at an account for the submit of a task in doubt. `false`: the task is fenced. */
    readonly beginSearch: (search: {
      readonly taskId: TaskId
      readonly epoch: number
      readonly n: number
      readonly vendor: string
      readonly accountId: string
    }) => Effect.Effect<boolean, StoreUnavailable>
    /** The accounts that are known to have no submit of this task that the store lost. */
    readonly searched: (id: TaskId) => Effect.Effect<ReadonlySet<string>, StoreUnavailable>
    /** When the store was last marked as restored. Its records of submits before then may be incomplete. */
    readonly restoredAt: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
    readonly tasks: (
      ids: ReadonlyArray<TaskId>
    ) => Effect.Effect<ReadonlyArray<TaskRow>, StoreUnavailable>
    /**
     * Settles submits in one transaction, each only if its task still waits in the queue or is the task in hand with
     * this epoch. `false`: the task in hand is fenced.
     */
    readonly settle: (of: {
      readonly queue: string
      readonly taskId: TaskId
      readonly epoch: number
      readonly settled: ReadonlyArray<Settled>
      readonly now: DateTime.Utc
    }) => Effect.Effect<boolean, StoreUnavailable>
  }
>()("gateway/tasks/submission/VendorAttemptStore") {
  static readonly layer = Layer.effect(
    VendorAttemptStore,
    Effect.map(PgClient.PgClient, (sql) =>
      VendorAttemptStore.of({
        waiting: ({ limit, queue, taskId }) =>
          sql`
            SELECT a.task_id, a.n, a.started_at, ${overAt(sql)}, length(a.body_hash) = 0 AS in_doubt FROM (
              SELECT task_id, attempt FROM runs WHERE task_id = ${taskId}
              UNION ALL (
                SELECT task_id, attempt FROM runs WHERE queue = ${queue} AND owner IS NULL
                ORDER BY due_at, task_id LIMIT ${limit}
              )
            ) r
            CROSS JOIN LATERAL (
              SELECT * FROM vendor_attempts v WHERE v.task_id = r.task_id AND v.n = r.attempt OFFSET 0
            ) a WHERE a.state = 'submitting'`.pipe(rowsOf(Unsettled), storeFailures),
        around: ({ accountId, from, jobIds, until }) =>
          sql`
            SELECT a.task_id, a.n, a.state, a.started_at, ${overAt(sql)}, length(a.body_hash) = 0 AS in_doubt, j.ids
            FROM vendor_attempts a CROSS JOIN LATERAL (
              SELECT array_agg(h.value) AS ids FROM jsonb_each_text(a.handle) h
              WHERE h.value = ANY (${[...jobIds]})
            ) j
            WHERE a.started_at BETWEEN ${toDate(from)} AND ${toDate(until)}
              AND a.account_id = ${accountId} AND a.state <> 'refused'
              AND (a.state <> 'submitted' OR j.ids IS NOT NULL)
            UNION ALL
            SELECT r.task_id, r.attempt, 'doubt', t.created_at, NULL, true, NULL
            FROM runs r CROSS JOIN LATERAL (SELECT * FROM tasks WHERE id = r.task_id OFFSET 0) t
            WHERE r.in_doubt AND t.created_at <= ${toDate(until)} AND NOT EXISTS (
              SELECT FROM vendor_attempts v
              WHERE v.task_id = r.task_id AND length(v.body_hash) = 0
                AND (v.account_id = ${accountId} OR v.state = 'submitting')
            )`.pipe(
            rowsOf(Around),
            Effect.map((rows): AttemptsAround => ({
              unsettled: rows.filter(({ state }) => state !== "submitted"),
              owned: new Set(rows.flatMap(({ ids }) => ids ?? []))
            })),
            storeFailures
          ),
        ...searchRecords(sql),
        tasks: (ids) =>
          sql`SELECT * FROM tasks WHERE id = ANY (${[...ids]}::uuid[])`.pipe(
            rowsOf(TaskRow),
            storeFailures
          ),
        settle: ({ epoch, now, queue, settled, taskId }) =>
          sql`
            SELECT task_id FROM attempts_settle(
              ${queue}, ${taskId}, ${epoch}, ${sql.json(settled.map(settleCall))}, ${toDate(now)})`.pipe(
            rowsOf(Schema.Struct({ taskId: TaskId })),
            Effect.map((rows) => rows.some((row) => row.taskId === taskId)),
            storeFailures
          )
      })
    )
  )
}

/** A submit that the store lost may have been sent right before the store was marked as restored. */
const overAt = (sql: PgClient.PgClient) =>
  sql`CASE WHEN length(a.body_hash) > 0 THEN a.answered_at ELSE greatest(
    a.answered_at,
    (SELECT max(restored_at) FROM store_marks) + make_interval(secs => ${Duration.toSeconds(submitTimeout)})
  ) END AS answered_at`

/** The records of searches for the jobs of tasks in doubt. */
const searchRecords = (sql: PgClient.PgClient) =>
  ({
    beginSearch: ({ accountId, epoch, n, taskId, vendor }) =>
      sql`SELECT * FROM task_search_begin(${taskId}, ${epoch}, ${n}, ${vendor}, ${accountId})`.pipe(
        Effect.map((rows) => rows.length > 0),
        storeFailures
      ),
    searched: (id) =>
      sql`
        SELECT account_id FROM vendor_attempts
        WHERE task_id = ${id} AND length(body_hash) = 0 AND state = 'refused'`.pipe(
        rowsOf(Schema.Struct({ accountId: Schema.String })),
        Effect.map((rows) => new Set(rows.map(({ accountId }) => accountId))),
        storeFailures
      ),
    restoredAt: sql`SELECT max(restored_at) AS at FROM store_marks`.pipe(
      rowOf(Schema.Struct({ at: Schema.NullOr(Time) })),
      Effect.map(({ at }) => Option.fromNullOr(at)),
      storeFailures
    )
  }) satisfies Partial<VendorAttemptStore["Service"]>

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
