import { PgClient } from "@effect/sql-pg"
import { Array, Effect, Layer, Option, Schema } from "effect"
import { SqlError } from "effect/sql"
import type * as DateTime from "effect/DateTime"
import { EndpointId, TaskId, UserId } from "../domain/Ids.ts"
import { sqlState, storeFailures } from "./Failures.ts"
import { Bytes, Micro, rowsOf, Time, toDate } from "./Rows.ts"
import { OwnedTask, TaskRow, TaskStore } from "./TaskStore.ts"
import type {
  Acceptance,
  AcceptOutcome,
  AttemptEnd,
  AttemptStart,
  Finish,
  FinishOutcome,
  Standing
} from "./TaskStore.ts"

/** `TaskStore` on Postgres. The functions it calls stand in `schema/migrations`. */
export const layer: Layer.Layer<TaskStore, never, PgClient.PgClient> = Layer.effect(
  TaskStore,
  Effect.map(PgClient.PgClient, (sql) =>
    TaskStore.of({
      accept: accept(sql),
      finish: finish(sql),
      ...ownership(sql),
      ...attempts(sql),
      find: (id) =>
        sql`SELECT * FROM tasks WHERE id = ${id}`.pipe(
          rowsOf(TaskRow),
          Effect.map(Array.head),
          storeFailures
        )
    })
  )
)

const AcceptRow = Schema.Struct({
  requestHash: Schema.NullOr(Bytes),
  status: Schema.NullOr(Schema.Int),
  body: Schema.NullOr(Schema.String),
  cost: Schema.NullOr(Micro),
  firstBalance: Schema.NullOr(Micro),
  balance: Schema.NullOr(Micro),
  endpoints: Schema.NullOr(Schema.Array(EndpointId))
})

const acceptOutcome = (row: typeof AcceptRow.Type): AcceptOutcome =>
  row.requestHash !== null && row.status !== null && row.body !== null && row.cost !== null
    ? {
        _tag: "Replayed",
        requestHash: row.requestHash,
        status: row.status,
        body: row.body,
        cost: row.cost,
        balance: row.firstBalance ?? row.cost
      }
    : row.balance === null
      ? { _tag: "BalanceTooLow" }
      : { _tag: "Accepted", balance: row.balance, endpoints: row.endpoints ?? [] }

function accept(sql: PgClient.PgClient) {
  return (a: Acceptance) => {
    const replay = Option.getOrNull(a.idempotency)
    return sql`
    SELECT (replayed).request_hash, (replayed).status, (replayed).body, (replayed).cost,
      (replayed).balance AS first_balance, balance, endpoints
    FROM task_accept(
      p_task => ${a.taskId}, p_user => ${a.userId}, p_api_key => ${a.apiKeyId},
      p_vendor => ${a.vendor}, p_model => ${a.model}, p_action => ${a.action}, p_kind => ${a.resultKind},
      p_body => ${sql.json(a.body)}, p_sandbox => ${a.sandbox}, p_price => ${a.price},
      p_deadline => ${toDate(a.deadlineAt)}, p_trace => ${a.traceId}, p_now => ${toDate(a.now)},
      p_event => ${a.event.id}, p_event_body => ${a.event.body},
      p_key => ${replay?.key ?? null}, p_request_hash => ${replay?.requestHash ?? null},
      p_answer => ${replay?.answer ?? null},
      p_key_since => ${replay === null ? null : toDate(replay.since)}
    )`.pipe(
      rowsOf(AcceptRow),
      Effect.map((rows): AcceptOutcome => {
        const row = rows[0]
        return row === undefined ? { _tag: "BalanceTooLow" } : acceptOutcome(row)
      }),
      Effect.catchIf(
        (error) => SqlError.isSqlError(error) && Option.contains(sqlState(error), "GW402"),
        () => Effect.succeed<AcceptOutcome>({ _tag: "BalanceTooLow" })
      ),
      storeFailures
    )
  }
}

const OwnedRow = Schema.Struct({
  ...TaskRow.fields,
  epoch: Schema.Int,
  deadlineAt: Time,
  n: Schema.NullOr(Schema.Int),
  attemptState: Schema.NullOr(Schema.Literals(["submitting", "submitted", "refused", "ambiguous"])),
  accountId: Schema.NullOr(Schema.String),
  attemptStartedAt: Schema.NullOr(Time),
  handle: Schema.NullOr(Schema.Record(Schema.String, Schema.Json))
})

const ownedTask = (row: typeof OwnedRow.Type): OwnedTask =>
  new OwnedTask({
    task: new TaskRow(row),
    epoch: row.epoch,
    deadlineAt: row.deadlineAt,
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
            handle: row.handle
          })
  })

function ownership(sql: PgClient.PgClient) {
  const Id = Schema.Struct({ taskId: TaskId })
  const Epoch = Schema.Struct({ epoch: Schema.Int })
  const Owned = Schema.Struct({ taskId: TaskId, epoch: Schema.Int })
  return {
    own: (id: TaskId, owner: string) =>
      sql`
        WITH owned AS (
          UPDATE runs SET epoch = epoch + 1, owner = ${owner}
          WHERE task_id = ${id} AND owner IS NULL RETURNING *
        )
        SELECT t.*, o.epoch, o.deadline_at, a.n, a.state AS attempt_state, a.account_id,
          a.started_at AS attempt_started_at, a.handle
        FROM owned o JOIN tasks t ON t.id = o.task_id
        LEFT JOIN vendor_attempts a ON a.task_id = o.task_id AND a.n = o.attempt`.pipe(
        rowsOf(OwnedRow),
        Effect.map((rows) => Option.map(Array.head(rows), ownedTask)),
        storeFailures
      ),
    standing: (id: TaskId, epoch: number) =>
      sql`SELECT epoch FROM runs WHERE task_id = ${id}`.pipe(
        rowsOf(Epoch),
        Effect.map(([run]): Standing =>
          run === undefined ? "Ended" : run.epoch === epoch ? "Owned" : "Taken"
        ),
        storeFailures
      ),
    ownedBy: (owner: string) =>
      sql`SELECT task_id, epoch FROM runs WHERE owner = ${owner}`.pipe(
        rowsOf(Owned),
        storeFailures
      ),
    disown: (id: TaskId, epoch: number) =>
      sql`UPDATE runs SET owner = NULL WHERE task_id = ${id} AND epoch = ${epoch}`.pipe(
        Effect.asVoid,
        storeFailures
      ),
    sweep: (heartbeatSince: DateTime.Utc, limit: number) =>
      sql`
        WITH freed AS (
          UPDATE runs SET owner = NULL
          WHERE owner IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM processes p WHERE p.id = runs.owner AND p.heartbeat_at >= ${toDate(heartbeatSince)}
          ) RETURNING task_id
        )
        SELECT task_id FROM freed
        UNION SELECT task_id FROM runs WHERE owner IS NULL
        LIMIT ${limit}`.pipe(rowsOf(Id), Effect.map(Array.map((row) => row.taskId)), storeFailures)
  }
}

function attempts(sql: PgClient.PgClient) {
  const Count = Schema.Struct({ n: Schema.Int })
  const changed = <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
    statement.pipe(
      rowsOf(Count),
      Effect.map((rows) => rows.length > 0),
      storeFailures
    )
  return {
    beginAttempt: (a: AttemptStart) =>
      changed(sql`
        WITH fence AS (
          UPDATE runs SET attempt = ${a.n} WHERE task_id = ${a.taskId} AND epoch = ${a.epoch}
          RETURNING task_id
        ), moved AS (
          UPDATE tasks SET status = 'processing', started_at = ${toDate(a.now)}, updated_at = ${toDate(a.now)}
          WHERE id IN (SELECT task_id FROM fence) AND status = 'pending'
        )
        INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, started_at)
        SELECT task_id, ${a.n}::int, ${a.vendor}::text, ${a.accountId}::text, ${a.bodyHash}::bytea,
          'submitting', ${toDate(a.now)}::timestamptz FROM fence
        ON CONFLICT (task_id, n) DO UPDATE SET state = excluded.state
        RETURNING n`),
    endAttempt: (a: AttemptEnd) =>
      changed(sql`
        UPDATE vendor_attempts v
        SET state = ${a.state}, handle = ${sql.json(a.handle)}, failure = ${a.failure},
          answered_at = ${toDate(a.now)}
        FROM runs r
        WHERE v.task_id = ${a.taskId} AND v.n = ${a.n}
          AND r.task_id = v.task_id AND r.epoch = ${a.epoch}
        RETURNING v.n`)
  }
}

const FinishRow = Schema.Struct({
  won: Schema.Boolean,
  userId: Schema.NullOr(UserId),
  alert: Schema.NullOr(Schema.Boolean),
  available: Schema.NullOr(Micro),
  threshold: Schema.NullOr(Micro),
  endpoints: Schema.NullOr(Schema.Array(EndpointId))
})

function finish(sql: PgClient.PgClient) {
  const Published = Schema.Struct({ endpoints: Schema.Array(EndpointId) })
  const close = (f: Finish) => {
    const done = f.outcome.status === "completed" ? f.outcome : undefined
    const failed = f.outcome.status === "failed" ? f.outcome.error : null
    return sql`
      SELECT * FROM task_finish(
        p_task => ${f.taskId}, p_epoch => ${Option.getOrNull(f.epoch)}, p_status => ${f.outcome.status},
        p_result => ${done === undefined ? null : sql.json(done.result)},
        p_error => ${failed === null ? null : sql.json(failed)},
        p_captured => ${done?.captured ?? 0n},
        p_event => ${f.event.id}, p_event_body => ${f.event.body},
        p_throttle => make_interval(secs => ${f.throttleSeconds}), p_now => ${toDate(f.now)}
      )`.pipe(rowsOf(FinishRow))
  }
  return Effect.fnUntraced(
    function* (f: Finish) {
      const row = Array.head(yield* close(f))
      if (Option.isNone(row) || !row.value.won) {
        return { _tag: "Fenced" } satisfies FinishOutcome
      }
      const { alert, available, endpoints, threshold, userId } = row.value
      if (alert !== true || userId === null || available === null || threshold === null) {
        return { _tag: "Finished", endpoints: endpoints ?? [] } satisfies FinishOutcome
      }
      const event = f.alert({ userId, available, threshold })
      const published = yield* sql`
      SELECT event_publish(${event.id}, ${userId}, 'balance.low', NULL, ${event.body}, NULL, ${toDate(f.now)})
        AS endpoints`.pipe(rowsOf(Published))
      return {
        _tag: "Finished",
        endpoints: [...(endpoints ?? []), ...published.flatMap((p) => p.endpoints)]
      } satisfies FinishOutcome
    },
    sql.withTransaction,
    storeFailures
  )
}
