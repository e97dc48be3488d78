import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { markStore } from "../../../src/db/StoreMark.ts"
import { TaskId } from "../../../src/domain/Ids.ts"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import * as TaskStoreLive from "../../../src/tasks/TaskStoreLive.ts"
import { describeStores } from "../../support/stores.ts"
import { whileLocked } from "../../support/upgrade.ts"

/** docs/standbys.md */

const at = (seconds: number) => DateTime.makeUnsafe(seconds * 1000)
const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)

const beat = (id: string, second: number, seen = 0) =>
  Effect.flatMap(ProcessStore, (store) => store.heartbeat(id, at(second), [], seen))

const mark = (id: string, seen: number, since: number, second: number) =>
  Effect.flatMap(ProcessStore, (store) =>
    store.markRestored({ id, seen, since: at(since) }, at(second))
  )

/** Sets the state of a process to that in the copy of the store. */
const goBackTo = (id: string, advance: number, second: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      UPDATE processes SET advance = ${advance}, heartbeat_at = ${DateTime.toDateUtc(at(second))} WHERE id = ${id}`
  )

/** Unfinished tasks: without a submit, refused, submitted, without a response, and refused after a submit. */
const insertTasks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price, created_at, updated_at)
    SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(), 'v', 'm', 'generation',
      'images', 'pending', '{}', false, 1, to_timestamp(1), to_timestamp(1)
    FROM generate_series(1, 5) n`
  yield* sql`
    INSERT INTO runs (task_id, deadline_at, queue, due_at, owner, epoch, attempt)
    SELECT id, to_timestamp(2000000000), 'q', to_timestamp(1), 'proc_a', 7,
      CASE id WHEN ${idOf(1)} THEN 0 WHEN ${idOf(5)} THEN 2 ELSE 1 END
    FROM tasks`
  yield* sql`
    INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, started_at, handle)
    SELECT id, n, 'v', 'a', '\\x01', state, to_timestamp(1), CASE WHEN state = 'submitted' THEN '{}'::jsonb END
    FROM tasks JOIN (VALUES (${idOf(2)}::uuid, 1, 'refused'), (${idOf(3)}::uuid, 1, 'submitted'),
      (${idOf(4)}::uuid, 1, 'submitting'), (${idOf(5)}::uuid, 1, 'submitted'), (${idOf(5)}::uuid, 2, 'refused'))
      s (task, n, state) ON task = id`
})

const runs = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql`SELECT right(task_id::text, 1) AS n, owner, epoch, in_doubt FROM runs ORDER BY task_id`
)

const begin = (progress: { readonly processId: string; seen: number }, second: number, n = 1) =>
  Effect.andThen(TestClock.setTime(DateTime.toEpochMillis(at(second))), TaskStore).pipe(
    Effect.flatMap((tasks) =>
      tasks.beginAttempt({
        taskId: idOf(1),
        epoch: 7,
        n,
        vendor: "v",
        accountId: "a",
        bodyHash: new Uint8Array([1]),
        queue: { name: "q" },
        now: at(second),
        progress
      })
    )
  )

describeStores("a store that went back in time", (database, kind) => {
  const store = Layer.merge(ProcessStore.layer, TaskStoreLive.layer).pipe(
    Layer.provideMerge(database)
  )

  it.effect("is behind what a process knows until it is marked, once for all processes", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* beat("proc_a", 0)).advance, 1)
      assert.strictEqual((yield* beat("proc_a", 2, 1)).advance, 2)
      yield* beat("proc_b", 2)
      yield* beat("proc_b", 4, 1)
      yield* goBackTo("proc_a", 1, 0)
      // Its row was lost too
      yield* (yield* SqlClient.SqlClient)`DELETE FROM processes WHERE id = 'proc_b'`
      assert.strictEqual((yield* beat("proc_a", 20, 2)).advance, 1)
      assert.strictEqual((yield* beat("proc_a", 22, 2)).advance, 1, "while it is not marked")
      assert.strictEqual((yield* beat("proc_b", 22, 2)).advance, 0)
      const first = Option.getOrThrow(yield* mark("proc_a", 2, 2, 22))
      assert.deepStrictEqual(first.trustedUntil, at(0))
      assert.isTrue(Option.isNone(yield* mark("proc_b", 2, 4, 23)))
      assert.strictEqual((yield* beat("proc_a", 24, 2)).advance, 3)
      assert.strictEqual((yield* beat("proc_b", 24, 2)).advance, 3)
      // The second time
      yield* goBackTo("proc_b", 1, 22)
      assert.isTrue(Option.isSome(yield* mark("proc_b", 3, 24, 30)))
    }).pipe(Effect.provide(store))
  )

  if (kind === "postgres") {
    it.effect("is marked by one process at a time", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const marking = (id: string) =>
          `SELECT FROM store_mark_restored('${id}', now(), false, '${id}', 1, null)`
        const other = sql.withTransaction(
          Effect.andThen(sql`SET LOCAL lock_timeout = '50ms'`, sql.unsafe(marking("proc_b")))
        )
        const waited = yield* whileLocked(sql, marking("proc_a"), Effect.exit(other))
        assert.strictEqual(waited._tag, "Failure")
      }).pipe(Effect.provide(store))
    )
  }

  it.effect(
    "takes unfinished tasks from their owners; tasks with unknown submits are in doubt",
    () =>
      Effect.gen(function* () {
        yield* insertTasks
        const marked = Option.getOrThrow(yield* markStore({ by: "test", now: at(50) }))
        assert.strictEqual(marked.tasksInDoubt, 3)
        const row = { owner: null, epoch: 1_000_007 }
        assert.deepStrictEqual(yield* runs, [
          { n: "1", ...row, inDoubt: true },
          { n: "2", ...row, inDoubt: true },
          { n: "3", ...row, inDoubt: false },
          { n: "4", ...row, inDoubt: false },
          { n: "5", ...row, inDoubt: true }
        ])
        yield* markStore({ by: "test", now: at(60), allowsSubmits: true })
        assert.isTrue((yield* runs).every(({ inDoubt }) => inDoubt === false))
      }).pipe(Effect.provide(store))
  )

  it.effect(
    "begins no submit of a process that knows more than it, and counts the ones it begins",
    () =>
      Effect.gen(function* () {
        yield* insertTasks
        yield* beat("proc_a", 0)
        const progress = { processId: "proc_a", seen: 1 }
        assert.isTrue(yield* begin(progress, 1))
        assert.strictEqual(progress.seen, 2)
        // The heartbeats are in the store, but the submit is not; another process's progress proves nothing
        yield* goBackTo("proc_a", 1, 0)
        yield* beat("proc_b", 0)
        yield* goBackTo("proc_b", 9, 0)
        assert.isFalse(yield* begin(progress, 2, 2))
        assert.strictEqual((yield* beat("proc_a", 2, progress.seen)).advance, 1)
        yield* mark("proc_a", 2, 0, 3)
        assert.isFalse(yield* begin(progress, 4, 2), "its epoch is from the lost period")
      }).pipe(Effect.provide(store))
  )

  it.effect("begins no submit for ten seconds after its timeline has changed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* insertTasks
      const { moved, timeline } = yield* beat("proc_a", 0)
      assert.isFalse(moved)
      yield* sql`UPDATE store_timeline SET timeline = ${timeline + 1}`
      const progress = { processId: "proc_a", seen: 1 }
      assert.isFalse(yield* begin(progress, 1), "before a heartbeat has found it")
      assert.isTrue((yield* beat("proc_a", 2, 1)).moved)
      assert.isFalse((yield* beat("proc_b", 2)).moved)
      assert.isFalse(yield* begin(progress, 11))
      assert.isTrue(yield* begin(progress, 12))
    }).pipe(Effect.provide(store))
  )

  it.effect("ends the open holds of calls and reservations, but not of tasks", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`INSERT INTO users (id, email, created_at) VALUES (${idOf(9)}, 'a@example.com', to_timestamp(1))`
      yield* sql`INSERT INTO wallets (user_id) VALUES (${idOf(9)}) ON CONFLICT DO NOTHING`
      yield* sql`
        INSERT INTO holds (id, user_id, kind, amount, created_at, process_id)
        SELECT gen_random_uuid(), ${idOf(9)}::uuid, kind, 1, to_timestamp(1), 'proc_a'
        FROM unnest(ARRAY['call', 'reservation', 'task']) kind`
      const marked = Option.getOrThrow(yield* markStore({ by: "test", now: at(50) }))
      assert.strictEqual(marked.holdsEnded, 2)
      assert.deepStrictEqual(yield* sql`SELECT kind FROM holds WHERE process_id = 'proc_a'`, [
        { kind: "task" }
      ])
    }).pipe(Effect.provide(store))
  )
})
