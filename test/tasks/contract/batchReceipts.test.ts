import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import * as Credits from "../../../src/domain/Credits.ts"
import { FileId, TaskId, UserId } from "../../../src/domain/Ids.ts"
import { VendorBatchStore } from "../../../src/tasks/vendorbatches/VendorBatchStore.ts"
import { describeStores } from "../../support/stores.ts"
import { whileLocked } from "../../support/upgrade.ts"

/** docs/reference/vendor-batches.md#receipts */

const id = TaskId.make("00000000-0000-7000-8000-000000000001")
const userId = UserId.make("00000000-0000-7000-8000-0000000000a1")
const now = DateTime.makeUnsafe(1000)
const owned = { task: { id, userId }, epoch: 2 }

const receipt = (n: number, cost: number) => ({
  digest: String(n).padStart(20, "0"),
  customId: `request ${n}`,
  model: n % 2 === 0 ? "even" : "odd",
  outcome: "settled" as const,
  status: 200,
  cost: Credits.make(BigInt(cost)),
  usage: { inputTokens: n, outputTokens: 1, counted: false },
  requestId: `req_${n}`
})

const run = (epoch: number, owner: string | null, task = id) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      INSERT INTO runs (task_id, deadline_at, queue, due_at, owner, epoch)
      VALUES (${task}, to_timestamp(1000), 'q', to_timestamp(0), ${owner}, ${epoch})`
  )

const add = (left: number, receipts: ReadonlyArray<ReturnType<typeof receipt>>, as = owned) =>
  Effect.flatMap(VendorBatchStore, (store) =>
    Effect.map(store.addReceipts(as, Credits.make(BigInt(left)), receipts, now), Option.map(Number))
  )

describeStores("VendorBatchStore", (database, kind) => {
  const store = VendorBatchStore.layer.pipe(Layer.provideMerge(database))

  it.effect("writes each receipt once, in order, and charges at most what is left", () =>
    Effect.gen(function* () {
      yield* run(2, "proc_a")
      const batches = yield* VendorBatchStore
      assert.deepStrictEqual(yield* add(100, [receipt(1, 30), receipt(2, 20)]), Option.some(50))
      // Read again from the beginning
      assert.deepStrictEqual(
        yield* add(50, [
          receipt(1, 30),
          receipt(2, 20),
          receipt(3, 45),
          receipt(4, 10),
          receipt(5, 7)
        ]),
        Option.some(50)
      )
      const rows = yield* batches.receipts(owned.task, { after: undefined, limit: 10 })
      assert.deepStrictEqual(
        rows.map(({ captured }) => Number(captured)),
        [30, 20, 45, 5, 0]
      )
      const sums = yield* batches.sumReceipts(owned.task)
      const [even, odd] = sums.toSorted((a, b) => a.model.localeCompare(b.model))
      assert.lengthOf(sums, 2)
      assert.deepInclude<object>(even!, {
        model: "even",
        captured: 25n,
        settled: 2,
        input: 6,
        output: 2
      })
      assert.deepInclude<object>(odd!, {
        model: "odd",
        captured: 75n,
        settled: 3,
        released: 0,
        input: 9
      })
      assert.deepStrictEqual(
        (yield* batches.receipts(owned.task, { after: receipt(2, 0).digest, limit: 2 })).map(
          ({ customId }) => customId
        ),
        ["request 3", "request 4"]
      )
    }).pipe(Effect.provide(store))
  )

  it.effect("writes receipts only for the owner of the task", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* run(3, "proc_b")
      assert.deepStrictEqual(yield* add(100, [receipt(1, 30)]), Option.none())
      yield* sql`UPDATE runs SET owner = NULL, epoch = 2`
      assert.deepStrictEqual(yield* add(100, [receipt(1, 30)]), Option.none())
      yield* sql`DELETE FROM runs`
      assert.deepStrictEqual(yield* add(100, [receipt(1, 30)]), Option.none())
      const sums = yield* Effect.flatMap(VendorBatchStore, (it) => it.sumReceipts(owned.task))
      assert.deepStrictEqual(sums, [])
    }).pipe(Effect.provide(store))
  )

  it.effect("sums up and deletes the receipts of one task only", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const batches = yield* VendorBatchStore
      const tasks = [1, 2, 3].map((n) =>
        TaskId.make(`00000000-0000-7000-8000-${`${n}`.padStart(12, "0")}`)
      )
      for (const [n, task] of tasks.entries()) {
        yield* run(2, "proc_a", task)
        yield* add(100, [receipt(1, 10 + n)], { task: { id: task, userId }, epoch: 2 })
      }
      const sumOf = (task: TaskId) =>
        Effect.map(batches.sumReceipts({ id: task, userId }), (sums) =>
          sums.map(({ captured }) => Number(captured))
        )
      assert.deepStrictEqual(yield* Effect.forEach(tasks, sumOf), [[10], [11], [12]])
      yield* sql`SELECT FROM batch_receipts_delete(${userId}, ${tasks[1]!})`
      assert.deepStrictEqual(yield* Effect.forEach(tasks, sumOf), [[10], [], [12]])
    }).pipe(Effect.provide(store))
  )

  if (kind === "postgres") {
    it.effect("keeps the task from another owner until the receipts are written", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* run(2, "proc_a")
        const free = yield* whileLocked(
          sql,
          `SELECT FROM batch_receipts_add('${id}', 2, '${userId}', 9, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', now())`,
          sql`SELECT FROM runs FOR NO KEY UPDATE SKIP LOCKED`
        )
        assert.isEmpty(free)
      }).pipe(Effect.provide(store))
    )
  }

  it.effect("writes one receipt for a request with two results in a file", () =>
    Effect.gen(function* () {
      yield* run(2, "proc_a")
      assert.deepStrictEqual(yield* add(100, [receipt(1, 30), receipt(1, 40)]), Option.some(30))
    }).pipe(Effect.provide(store))
  )

  it.effect("records the vendor's progress once, only for the owner", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const batches = yield* VendorBatchStore
      yield* run(2, "proc_a")
      const progress = { status: "in_progress", completed: 1, failed: 0 } as const
      yield* batches.note({ id, epoch: 1 }, progress)
      assert.lengthOf(yield* sql`SELECT 1 FROM vendor_batches`, 0)
      yield* batches.note({ id, epoch: 2 }, progress)
      const [first] = yield* sql`SELECT xmin::text, status, completed FROM vendor_batches`
      yield* batches.note({ id, epoch: 2 }, progress)
      const [second] = yield* sql`SELECT xmin::text, status, completed FROM vendor_batches`
      assert.deepStrictEqual(second, first)
      assert.deepInclude(first, { status: "in_progress", completed: 1 })
    }).pipe(Effect.provide(store))
  )

  it.effect("records the end and the files only for the owner", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const batches = yield* VendorBatchStore
      yield* run(2, "proc_a")
      const result = { status: "completed", completed: 1, failed: 0 } as const
      const files = { output: FileId.make(`file-${"0".repeat(32)}`), errors: null }
      yield* batches.noteEnd({ ...owned, epoch: 1 }, result, files)
      assert.lengthOf(yield* sql`SELECT 1 FROM vendor_batches`, 0)
      yield* batches.noteEnd(owned, result, files)
      const [noted] = yield* sql`SELECT status, output_file FROM vendor_batches`
      assert.deepStrictEqual(noted, { status: "completed", outputFile: files.output })
    }).pipe(Effect.provide(store))
  )
})
