import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TaskId } from "../../../src/domain/Ids.ts"
import type { Owned } from "../../../src/tasks/running/OwnedTask.ts"
import { VendorAttemptStore } from "../../../src/tasks/submission/VendorAttemptStore.ts"
import type { Settled } from "../../../src/tasks/submission/VendorAttemptStore.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { AttemptOutcome } from "../../../src/tasks/TaskStore.ts"
import * as TaskStoreLive from "../../../src/tasks/TaskStoreLive.ts"
import { besideLocked } from "../../support/lockedRows.ts"
import { withoutJob } from "../../support/owned.ts"
import { describeStores } from "../../support/stores.ts"

/** docs/reference/vendors.md#reconciliation, ADR 0194 */

const at = (seconds: number) => DateTime.makeUnsafe(seconds * 1000)
const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)
const numbers = (all: ReadonlyArray<{ readonly taskId: TaskId }>) =>
  all.map(({ taskId }) => Number(taskId.slice(-12))).sort((x, y) => x - y)

const lists = { name: "account/lists" }
const account = "account"

/** Tasks 1 to `count` in hand, each with an attempt that began at the second of its number. */
const begun = Effect.fnUntraced(function* (count: number) {
  const sql = yield* SqlClient.SqlClient
  const tasks = yield* TaskStore
  yield* sql`
    INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price,
      created_at, updated_at)
    SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(), 'v', 'm',
      'generation', 'images', 'processing', '{"prompt":"x"}', true, 0, to_timestamp(0), to_timestamp(0)
    FROM generate_series(1, ${count}::int) n`
  yield* sql`
    INSERT INTO runs (task_id, deadline_at, queue, due_at, slot_key, slot_held, account_id)
    SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, to_timestamp(1e6), 'q',
      to_timestamp(0), 'slots', true, ${account} FROM generate_series(1, ${count}::int) n`
  const owned = yield* tasks.claim({ queue: "q", limit: count, owner: "proc_a", now: at(1) })
  yield* Effect.forEach(owned, ({ epoch, task: { id } }) =>
    tasks.beginAttempt({
      taskId: id,
      epoch,
      n: 1,
      vendor: "v",
      accountId: account,
      bodyHash: new Uint8Array([1]),
      queue: { name: "q" },
      now: at(Number(id.slice(-12)))
    })
  )
  return owned
})

const ended = ({ epoch, task }: Owned, attempt: AttemptOutcome, queue: string) =>
  Effect.flatMap(TaskStore, (tasks) =>
    tasks.endStep({
      taskId: task.id,
      epoch,
      attempt,
      now: at(50),
      next: { dueAt: at(50), queue: { name: queue } }
    })
  )

const missed = (owned: Owned) =>
  ended(owned, { n: 1, state: "submitting", handle: null, failure: "AMBIGUOUS: x" }, lists.name)

const rowsOf = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`
    SELECT right(r.task_id::text, 1)::int AS n, r.owner, r.queue, r.slot_held, v.state, v.handle,
      extract(epoch FROM v.answered_at)::int AS answered
    FROM runs r JOIN vendor_attempts v ON v.task_id = r.task_id ORDER BY r.task_id`
)

describeStores("attempts whose outcome is unknown", (database, kind) => {
  const store = Layer.mergeAll(TaskStoreLive.layer, VendorAttemptStore.layer).pipe(
    Layer.provideMerge(database)
  )

  it.effect(
    "wait together, with the times when they began and when their response was missed",
    () =>
      Effect.gen(function* () {
        const attempts = yield* VendorAttemptStore
        const owned = yield* begun(4)
        yield* Effect.forEach(owned.slice(0, 3), missed)
        const tasks = yield* TaskStore
        const [mine] = yield* tasks.claim({ queue: lists.name, limit: 1, owner: "b", now: at(51) })
        const of = { queue: lists.name, taskId: mine!.task.id }
        const waiting = yield* attempts.waiting({ ...of, limit: 10 })
        assert.deepStrictEqual(numbers(waiting), [1, 2, 3])
        assert.isTrue(
          waiting.every(({ answeredAt }) => DateTime.toEpochMillis(answeredAt!) === 50_000)
        )
        assert.strictEqual((yield* attempts.waiting({ ...of, limit: 1 })).length, 2)
        const attempt = Option.getOrThrow(withoutJob(mine).attempt)
        assert.deepStrictEqual([attempt.state, attempt.failure], ["submitting", "AMBIGUOUS: x"])
        assert.strictEqual((yield* rowsOf)[0]?.["slotHeld"], true, "a job may hold it")
        const all = yield* attempts.tasks(waiting.map(({ taskId }) => taskId))
        assert.strictEqual(all.length, 3)
        for (const { body } of all) assert.deepStrictEqual(body, { prompt: "x" })
      }).pipe(Effect.provide(store))
  )

  it.effect("are found by time while they are unsettled, with the jobs that belong to a task", () =>
    Effect.gen(function* () {
      const attempts = yield* VendorAttemptStore
      const owned = yield* begun(6)
      yield* missed(owned[0]!)
      const handle = { taskId: "job 2", submittedAtMillis: 1 }
      yield* ended(owned[1]!, { n: 1, state: "submitted", handle, failure: null }, "polls")
      yield* ended(owned[2]!, { n: 1, state: "refused", handle: null, failure: "x" }, "q")
      yield* ended(owned[3]!, { n: 1, state: "ambiguous", handle: null, failure: "x" }, "q")
      const of = { accountId: account, from: at(0), until: at(5), jobIds: ["job 1", "job 2"] }
      const around = yield* attempts.around(of)
      assert.deepStrictEqual(numbers(around.unsettled), [1, 4, 5], "6 began later")
      assert.deepStrictEqual([...around.owned], ["job 2"])
      const later = yield* attempts.around({ ...of, from: at(3) })
      assert.deepStrictEqual([numbers(later.unsettled), later.owned.size], [[4, 5], 0])
      const other = yield* attempts.around({ ...of, accountId: "another" })
      assert.deepStrictEqual([other.unsettled.length, other.owned.size], [0, 0])
    }).pipe(Effect.provide(store))
  )

  it.effect("are recorded even if their tasks have ended meanwhile", () =>
    Effect.gen(function* () {
      const attempts = yield* VendorAttemptStore
      const sql = yield* SqlClient.SqlClient
      const owned = yield* begun(4)
      yield* sql`DELETE FROM runs WHERE task_id <> ${idOf(4)}`
      const handle = { taskId: "job 1" }
      const one = { n: 1, state: "submitted", handle, failure: null } as const
      assert.isFalse(yield* ended(owned[0]!, one, "polls"), "its owner learns that it has ended")
      assert.isFalse(
        yield* ended(owned[1]!, { n: 1, state: "refused", handle: null, failure: "x" }, "q")
      )
      assert.isFalse(yield* missed(owned[2]!))
      // Another owner has the run, so the report of the earlier one changes nothing
      assert.isFalse(yield* ended({ ...owned[3]!, epoch: 0 }, one, "polls"))
      const rows = yield* sql`SELECT state, handle, extract(epoch FROM answered_at)::int AS answered
        FROM vendor_attempts ORDER BY task_id`
      assert.deepStrictEqual(
        rows.map((row) => [row["state"], row["handle"], row["answered"]]),
        [
          ["submitted", handle, 50],
          ["refused", null, 50],
          ["ambiguous", null, 50],
          ["submitting", null, null]
        ]
      )
      // A late second response changes nothing
      yield* ended(owned[0]!, { n: 1, state: "refused", handle: null, failure: "x" }, "q")
      const around = yield* attempts.around({
        accountId: account,
        from: at(0),
        until: at(9),
        jobIds: ["job 1"]
      })
      assert.deepStrictEqual([...around.owned], ["job 1"])
      assert.deepStrictEqual(numbers(around.unsettled), [3, 4])
    }).pipe(Effect.provide(store))
  )

  it.effect("are settled once, by the owner of the scan", () =>
    Effect.gen(function* () {
      const attempts = yield* VendorAttemptStore
      const tasks = yield* TaskStore
      const owned = yield* begun(4)
      yield* Effect.forEach(owned.slice(0, 3), missed)
      const [mine] = yield* tasks.claim({ queue: lists.name, limit: 1, owner: "b", now: at(51) })
      const found = (n: number, job: string): Settled => ({
        taskId: idOf(n),
        n: 1,
        outcome: { state: "submitted", handle: { job }, failure: null },
        queue: "polls",
        dueAt: at(52)
      })
      const search = { queue: lists.name, taskId: mine!.task.id, epoch: mine!.epoch, now: at(52) }
      const own: Settled = { taskId: idOf(1), n: 1, queue: lists.name, dueAt: at(57) }
      const failed = { state: "ambiguous", handle: null, failure: "AMBIGUOUS: y" } as const
      const given: Settled = { taskId: idOf(3), n: 1, outcome: failed, queue: "q", dueAt: at(52) }
      // Task 4 is in hand of its process
      const settled = [own, found(2, "job 2"), given, found(4, "job 4")]
      const former = { ...search, epoch: mine!.epoch - 1, settled: [own] }
      assert.isFalse(yield* attempts.settle(former), "a former owner settles nothing")
      const earlier = { ...found(2, "job 0"), n: 0 }
      assert.isFalse(yield* attempts.settle({ ...search, settled: [earlier] }), "n has moved on")
      assert.isTrue(yield* attempts.settle({ ...search, settled }))
      const again = [own, found(2, "another"), { ...found(3, "late") }]
      assert.isFalse(yield* attempts.settle({ ...search, settled: again }), "it was given up")
      const rows = (yield* rowsOf).map((row) => [
        row["n"],
        row["owner"],
        row["queue"],
        row["slotHeld"],
        row["state"],
        row["handle"],
        row["answered"]
      ])
      assert.deepStrictEqual(rows, [
        [1, null, lists.name, true, "submitting", null, 50],
        [2, null, "polls", true, "submitted", { job: "job 2" }, 52],
        [3, null, "q", false, "ambiguous", null, 50],
        [4, "proc_a", "q", true, "submitting", null, null]
      ])
      assert.deepStrictEqual(
        (yield* tasks.claim({ queue: "polls", limit: 9, owner: "c", now: at(52) })).length,
        1
      )
    }).pipe(Effect.provide(store))
  )

  if (kind === "postgres") {
    it.effect("are left to another transaction that has locked their task", () =>
      Effect.gen(function* () {
        const attempts = yield* VendorAttemptStore
        const tasks = yield* TaskStore
        yield* Effect.forEach(yield* begun(3), missed)
        const [mine] = yield* tasks.claim({ queue: lists.name, limit: 1, owner: "b", now: at(51) })
        const settled = [1, 2, 3].map((n): Settled => ({
          taskId: idOf(n),
          n: 1,
          outcome: { state: "submitted", handle: { n }, failure: null },
          queue: "polls",
          dueAt: at(52)
        }))
        const search = { queue: lists.name, taskId: mine!.task.id, epoch: mine!.epoch, now: at(52) }
        const second = `SELECT FROM runs WHERE task_id = '${idOf(2)}'`
        assert.isTrue(yield* besideLocked(second, attempts.settle({ ...search, settled })))
        const states = (yield* rowsOf).map((row) => row["state"])
        assert.deepStrictEqual(states, ["submitted", "submitting", "submitted"])
      }).pipe(Effect.provide(store))
    )
  }

  it.effect("of a task in doubt are searched for only by its owner", () =>
    Effect.gen(function* () {
      const attempts = yield* VendorAttemptStore
      const sql = yield* SqlClient.SqlClient
      const [owned] = yield* begun(1)
      const search = { taskId: idOf(1), n: 2, vendor: "v", accountId: account }
      const { epoch } = owned!
      assert.isFalse(yield* attempts.beginSearch({ ...search, epoch }), "not in doubt")
      yield* sql`UPDATE runs SET in_doubt = true`
      assert.isFalse(yield* attempts.beginSearch({ ...search, epoch: epoch - 1 }), "fenced")
      assert.isTrue(yield* attempts.beginSearch({ ...search, epoch }))
    }).pipe(Effect.provide(store))
  )

  it.effect("two concurrent scans settle each task once", () =>
    Effect.gen(function* () {
      const attempts = yield* VendorAttemptStore
      const tasks = yield* TaskStore
      const owned = yield* begun(8)
      yield* Effect.forEach(owned, missed)
      const [one, two] = yield* tasks.claim({
        queue: lists.name,
        limit: 2,
        owner: "b",
        now: at(51)
      })
      const search = ({ epoch, task }: Owned, job: string) =>
        attempts.settle({
          queue: lists.name,
          taskId: task.id,
          epoch,
          now: at(52),
          settled: owned.map(({ task: { id } }): Settled => ({
            taskId: id,
            n: 1,
            outcome: { state: "submitted", handle: { job: `${job} ${id}` }, failure: null },
            queue: "polls",
            dueAt: at(52)
          }))
        })
      yield* Effect.all([search(one!, "x"), search(two!, "y")], { concurrency: 2 })
      const polled = yield* tasks.claim({ queue: "polls", limit: 20, owner: "c", now: at(52) })
      assert.strictEqual(polled.length, 8)
      const stored = yield* rowsOf
      assert.isTrue(stored.every(({ state }) => state === "submitted"))
    }).pipe(Effect.provide(store))
  )
})
