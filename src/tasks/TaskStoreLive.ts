import { PgClient } from "@effect/sql-pg"
import { Array, Effect, Layer, Option, Schema } from "effect"
import type * as DateTime from "effect/DateTime"
import { rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { taskColumns, TaskRow, TaskView } from "../db/TaskRow.ts"
import { TaskId } from "../domain/Ids.ts"
import { makeAccept, makeFindReplay } from "./TaskAcceptStore.ts"
import { makeFinish } from "./TaskFinishStore.ts"
import { OwnedTask, TaskStore, VendorJob } from "./TaskStore.ts"
import type { AttemptEnd, AttemptStart, RunState } from "./TaskStore.ts"

/** `TaskStore` on Postgres. The functions that it calls are in `schema/functions`. */
export const layer: Layer.Layer<TaskStore, never, PgClient.PgClient> = Layer.effect(
  TaskStore,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    return TaskStore.of({
      accept: yield* makeAccept(sql),
      findReplay: makeFindReplay(sql),
      finish: yield* makeFinish(sql),
      ...ownership(sql),
      ...attempts(sql),
      find: (id) =>
        sql`SELECT * FROM tasks WHERE id = ${id}`.pipe(
          rowsOf(TaskRow),
          Effect.map(Array.head),
          storeFailures
        ),
      view: (id) =>
        sql`SELECT ${sql.literal(taskColumns)} FROM tasks t WHERE t.id = ${id}`.pipe(
          rowsOf(TaskView),
          Effect.map(Array.head),
          storeFailures
        ),
      takeJobToCancel: (id, now) =>
        sql`
          UPDATE vendor_attempts SET cancel_asked_at = ${toDate(now)}
          WHERE task_id = ${id} AND cancel_asked_at IS NULL AND n = (
            SELECT max(a.n) FROM vendor_attempts a
            WHERE a.task_id = ${id} AND a.state = 'submitted' AND a.handle IS NOT NULL
          )
          RETURNING account_id, handle`.pipe(
          rowsOf(VendorJob),
          Effect.map(Array.head),
          storeFailures
        )
    })
  })
)

const OwnedRow = Schema.Struct({
  ...TaskRow.fields,
  epoch: Schema.Int,
  deadlineAt: Time,
  n: Schema.NullOr(Schema.Int),
  attemptState: Schema.NullOr(Schema.Literals(["submitting", "submitted", "refused", "ambiguous"])),
  accountId: Schema.NullOr(Schema.String),
  attemptStartedAt: Schema.NullOr(Time),
  handle: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  attemptFailure: Schema.NullOr(Schema.String)
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
            handle: row.handle,
            failure: row.attemptFailure
          })
  })

function ownership(sql: PgClient.PgClient) {
  const Id = Schema.Struct({ taskId: TaskId })
  const Epoch = Schema.Struct({ epoch: Schema.Int })
  const Owned = Schema.Struct({ taskId: TaskId, epoch: Schema.Int })
  return {
    acquireRun: (id: TaskId, owner: string) =>
      sql`
        WITH owned AS (
          UPDATE runs SET epoch = epoch + 1, owner = ${owner}
          WHERE task_id = ${id} AND owner IS NULL RETURNING *
        )
        SELECT t.*, o.epoch, o.deadline_at, a.n, a.state AS attempt_state, a.account_id,
          a.started_at AS attempt_started_at, a.handle, a.failure AS attempt_failure
        FROM owned o JOIN tasks t ON t.id = o.task_id
        LEFT JOIN vendor_attempts a ON a.task_id = o.task_id AND a.n = o.attempt`.pipe(
        rowsOf(OwnedRow),
        Effect.map((rows) => Option.map(Array.head(rows), ownedTask)),
        storeFailures
      ),
    runState: (id: TaskId, epoch: number) =>
      sql`SELECT epoch FROM runs WHERE task_id = ${id}`.pipe(
        rowsOf(Epoch),
        Effect.map(([run]): RunState =>
          run === undefined ? "Ended" : run.epoch === epoch ? "Owned" : "Taken"
        ),
        storeFailures
      ),
    ownedBy: (owner: string) =>
      sql`SELECT task_id, epoch FROM runs WHERE owner = ${owner}`.pipe(
        rowsOf(Owned),
        storeFailures
      ),
    releaseRun: (id: TaskId, epoch: number) =>
      sql`UPDATE runs SET owner = NULL WHERE task_id = ${id} AND epoch = ${epoch}`.pipe(
        Effect.asVoid,
        storeFailures
      ),
    releaseOrphans: (heartbeatSince: DateTime.Utc, limit: number) =>
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
  /** A submit that was refused or is ambiguous releases its slot in the same statement. */
  const freed = (a: AttemptEnd) => sql`
    WITH freed AS (
      UPDATE runs SET slot_key = NULL, slot_held = false
      WHERE task_id = ${a.taskId} AND epoch = ${a.epoch} AND slot_key IS NOT NULL
    )`
  return {
    beginAttempt: (a: AttemptStart) =>
      changed(sql`
        WITH fence AS (
          UPDATE runs SET attempt = ${a.n} WHERE task_id = ${a.taskId} AND epoch = ${a.epoch}
          RETURNING task_id
        ), started AS (
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
        ${a.state === "submitted" ? sql.literal("") : freed(a)}
        UPDATE vendor_attempts v
        SET state = ${a.state}, handle = ${sql.json(a.handle)}, failure = ${a.failure},
          answered_at = ${toDate(a.now)}
        FROM runs r
        WHERE v.task_id = ${a.taskId} AND v.n = ${a.n}
          AND r.task_id = v.task_id AND r.epoch = ${a.epoch}
        RETURNING v.n`)
  }
}
