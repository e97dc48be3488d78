import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TaskId } from "../../../src/domain/Ids.ts"
import { ConcurrencySlotStore } from "../../../src/tasks/submission/ConcurrencySlotStore.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import * as TaskStoreLive from "../../../src/tasks/TaskStoreLive.ts"
import { besideLocked } from "../../support/lockedRows.ts"
import { withoutJob } from "../../support/owned.ts"
import { describeStores } from "../../support/stores.ts"
import { whileLocked } from "../../support/upgrade.ts"

const line = "dashscope:1/wan2.5-t2i-preview"
const queue = "alibaba/text-to-image-max/submits"
const now = DateTime.makeUnsafe(0)

/** Ids sort by number, like those of tasks by time. */
const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)
const numberOf = (id: string) => Number(id.slice(-12))

/** Unfinished tasks that are in hand. */
const inHand = (from: number, to: number, owner = "a") =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      WITH made AS (
        INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price,
          created_at, updated_at)
        SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(), 'v', 'm',
          'generation', 'images', 'pending', '{}', true, 0, to_timestamp(0), to_timestamp(0)
        FROM generate_series(${from}::int, ${to}::int) n RETURNING id
      )
      INSERT INTO runs (task_id, epoch, owner, deadline_at, queue)
      SELECT id, 1, ${owner}, '2100-01-01', ${queue} FROM made`
  )

/** Like `task_finish_many`, for any process that ends the task. */
const end = (...tasks: ReadonlyArray<number>) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`DELETE FROM runs WHERE task_id = ANY(${tasks.map(idOf)}::uuid[])`
  )

const holders = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ id: string }>`SELECT task_id AS id FROM runs WHERE slot_held ORDER BY 1`,
    (rows) => rows.map(({ id }) => numberOf(id))
  )
)

/** Tasks in hand request a slot; returns those that got one. */
const take = (
  tasks: ReadonlyArray<number>,
  max: number,
  epoch = 1,
  at = { line, accountId: "dashscope:1" }
) =>
  Effect.flatMap(ConcurrencySlotStore, (slots) =>
    Effect.map(
      slots.take({
        ...at,
        max,
        requests: tasks.map((n) => ({ taskId: idOf(n), epoch, inputs: {} })),
        now
      }),
      (rows) => rows.filter(({ held }) => held).map(({ taskId }) => numberOf(taskId))
    )
  )

const serve = Effect.flatMap(ConcurrencySlotStore, (slots) => slots.serve(now))

const claim = (owner: string) =>
  Effect.flatMap(TaskStore, (tasks) => tasks.claim({ queue, limit: 100, owner, now }))

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at)

describeStores("slots of a vendor account", (database, kind) => {
  const store = Layer.mergeAll(ConcurrencySlotStore.layer, TaskStoreLive.layer).pipe(
    Layer.provideMerge(database)
  )

  it.effect(
    "are given up to the limit when many tasks of several processes request one at once",
    () =>
      Effect.gen(function* () {
        yield* inHand(1, 6, "a")
        yield* inHand(7, 12, "b")
        yield* Effect.forEach(range(1, 12), (n) => take([n], 3), { concurrency: "unbounded" })
        assert.strictEqual((yield* holders).length, 3)
        const sql = yield* SqlClient.SqlClient
        const waiting = yield* sql`SELECT 1 FROM runs WHERE owner IS NULL AND NOT slot_held`
        assert.strictEqual(waiting.length, 9, "the others wait without an owner")
        assert.deepEqual(yield* claim("c"), [], "and are not due")
      }).pipe(Effect.provide(store))
  )

  it.effect("a free slot makes the oldest waiting task due, for any process", () =>
    Effect.gen(function* () {
      yield* inHand(1, 5)
      assert.deepEqual((yield* take([5, 4], 2)).toSorted(), [4, 5])
      assert.deepEqual(yield* take([3, 2, 1], 2), [])
      assert.deepEqual(yield* serve, { given: 0, limits: 1 })
      yield* end(4)
      assert.deepEqual(yield* serve, { given: 1, limits: 1 })
      const [woken, ...others] = yield* claim("b")
      assert.deepEqual([numberOf(woken!.task.id), others], [1, []])
      const { accountId, slotHeld } = withoutJob(woken)
      assert.deepEqual([slotHeld, accountId], [true, "dashscope:1"])
      yield* end(1, 5)
      assert.deepEqual(yield* serve, { given: 2, limits: 1 })
      assert.deepEqual(
        (yield* claim("b")).map(({ task }) => numberOf(task.id)),
        [2, 3]
      )
      assert.deepEqual(yield* serve, { given: 0, limits: 0 })
    }).pipe(Effect.provide(store))
  )

  it.effect("are not given to a task that has ended while it waited", () =>
    Effect.gen(function* () {
      yield* inHand(1, 3)
      yield* take([1, 2, 3], 1)
      yield* end(2)
      yield* end(1)
      yield* serve
      assert.deepEqual(yield* holders, [3])
    }).pipe(Effect.provide(store))
  )

  it.effect(
    "a slot of a process that died moves with its task to the next owner, and is not given twice",
    () =>
      Effect.gen(function* () {
        yield* inHand(1, 1, "a")
        yield* inHand(2, 2, "b")
        assert.deepEqual(yield* take([1], 1), [1])
        assert.deepEqual(yield* take([2], 1), [])
        // The rescuer frees what the dead process owned, and b takes it
        yield* (yield* TaskStore).releaseRun(idOf(1), 1)
        yield* serve
        const [taken, ...others] = yield* claim("b")
        assert.deepEqual([numberOf(taken!.task.id), taken!.epoch, others], [1, 2, []])
        assert.deepEqual(yield* take([1], 1, 2), [1])
        yield* end(1)
        yield* serve
        assert.deepEqual(yield* holders, [2])
      }).pipe(Effect.provide(store))
  )

  it.effect("a task that moves to another account leaves its slot, whether it gets one there", () =>
    Effect.gen(function* () {
      const other = { line: "dashscope:2/wan2.5-t2i-preview", accountId: "dashscope:2" }
      yield* inHand(1, 6)
      assert.deepEqual(yield* take([1, 2], 2), [1, 2])
      assert.deepEqual(yield* take([3, 4, 5], 2), [])
      assert.deepEqual(yield* take([1], 1, 1, other), [1])
      assert.deepEqual(yield* take([2], 1, 1, other), [])
      assert.deepEqual(yield* holders, [1])
      assert.deepEqual(yield* serve, { given: 2, limits: 2 })
      assert.deepEqual(yield* holders, [1, 3, 4])
    }).pipe(Effect.provide(store))
  )

  it.effect("are not given to a fenced owner or to a task without an owner", () =>
    Effect.gen(function* () {
      yield* inHand(1, 2)
      yield* (yield* TaskStore).releaseRun(idOf(1), 1)
      assert.deepEqual(yield* take([1], 5), [])
      yield* claim("b")
      assert.deepEqual(yield* take([1], 5), [])
      assert.deepEqual(yield* holders, [])
    }).pipe(Effect.provide(store))
  )

  it.effect(
    "are requested again by waiting tasks of an account that leaves, only by their owners",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const other = { line: "dashscope:10/wan2.5-t2i-preview", accountId: "dashscope:10" }
        yield* inHand(1, 4)
        assert.deepEqual(yield* take([1, 2], 1), [1])
        assert.deepEqual(yield* take([3, 4], 1, 1, other), [3])
        // The job of task 1 runs until its next poll
        yield* sql`UPDATE runs SET owner = NULL, due_at = deadline_at WHERE task_id = ${idOf(1)}`
        yield* sql`SELECT FROM slots_leave(ARRAY['dashscope:1'], ${DateTime.toDateUtc(now)})`
        const claimed = yield* claim("b")
        assert.deepEqual(
          claimed.map(({ task }) => numberOf(task.id)),
          [2]
        )
        assert.deepEqual(yield* take([2], 1), [], "a former owner")
        assert.lengthOf(yield* sql`SELECT FROM runs WHERE owner = 'b'`, 1)
      }).pipe(Effect.provide(store))
  )

  if (kind === "postgres") {
    it.effect("are given by one transaction of a limit at a time", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* inHand(1, 4)
        yield* take([1, 2, 4], 1)
        yield* end(1)
        const calls = JSON.stringify([{ task: idOf(3), epoch: 1, inputs: {} }])
        const taking = `SELECT FROM slots_take('${line}', 1, 'dashscope:1', '${calls}', now())`
        assert.deepEqual(yield* whileLocked(sql, taking, serve), { given: 0, limits: 1 })
        assert.deepEqual(yield* holders, [2])
      }).pipe(Effect.provide(store))
    )

    it.effect("skip a task that another transaction is ending, without waiting for it", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const first = `SELECT FROM runs WHERE task_id = '${idOf(1)}'`
        yield* inHand(1, 4)
        assert.deepEqual(yield* besideLocked(first, take([1, 2], 1)), [2])
        yield* take([1, 3, 4], 1)
        const time = DateTime.toDateUtc(now)
        yield* besideLocked(first, sql`SELECT FROM slots_leave(ARRAY['dashscope:1'], ${time})`)
        const due = yield* sql`SELECT FROM runs WHERE due_at = ${time} AND NOT slot_held`
        assert.lengthOf(due, 2)
        yield* end(2)
        assert.deepEqual(yield* besideLocked(first, serve), { given: 1, limits: 1 })
        assert.deepEqual(yield* holders, [3])
      }).pipe(Effect.provide(store))
    )
  }

  it.effect("are given up to a raised limit as soon as another task requests one", () =>
    Effect.gen(function* () {
      yield* inHand(1, 5)
      yield* take([1, 2, 3, 4], 1)
      assert.deepEqual(yield* take([5], 3), [])
      assert.deepEqual(yield* holders, [1, 2, 3])
    }).pipe(Effect.provide(store))
  )

  it.effect("are given to a thousand waiting tasks oldest first, by one statement a round", () =>
    Effect.gen(function* () {
      const tasks = 1200
      yield* inHand(1, tasks)
      yield* take(range(1, tasks), 50)
      const begun = [...(yield* holders)]
      for (let round = 1; round < tasks / 50; round += 1) {
        yield* end(...(yield* holders))
        assert.strictEqual((yield* serve).given, 50)
        begun.push(...(yield* holders))
      }
      assert.deepEqual(begun, range(1, tasks))
    }).pipe(Effect.provide(store))
  )
})
