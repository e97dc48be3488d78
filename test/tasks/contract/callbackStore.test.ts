import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TaskId } from "../../../src/domain/Ids.ts"
import { CallbackStore } from "../../../src/tasks/callbacks/CallbackStore.ts"
import { PollPacingStore } from "../../../src/tasks/submission/PollPacingStore.ts"
import { describeStores } from "../../support/stores.ts"

const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)
const at = (minute: number) => DateTime.makeUnsafe(minute * 60_000)

/** A callback about task `n` at minute 5, distinguished by its byte. */
const callback = (n: number, byte: number) => ({
  digest: new Uint8Array(32).fill(byte),
  expiresAt: at(15),
  taskId: idOf(n),
  accountId: "fal-queue@fal:a",
  now: at(5),
  dueAt: at(5)
})

describeStores("CallbackStore", (database) => {
  const store = Layer.merge(CallbackStore.layer, PollPacingStore.layer).pipe(
    Layer.provideMerge(database)
  )

  /** Task 0 is in hand, task 1 waits until minute 10. */
  const withRuns = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const [n, owner] of ["a", null].entries()) {
      yield* sql`INSERT INTO runs (task_id, epoch, owner, deadline_at, due_at)
        VALUES (${idOf(n)}, 1, ${owner}, '2100-01-01', to_timestamp(600))`
    }
    const due = Effect.map(
      sql<{ millis: number; callbackReceived: boolean }>`
        SELECT extract(epoch from due_at)::float8 * 1000 AS millis, callback_received FROM runs ORDER BY task_id`,
      (rows) => rows.map((row) => (row.callbackReceived ? row.millis / 60_000 : "none"))
    )
    return { callbacks: yield* CallbackStore, due }
  })

  it.effect("accepts one of many concurrent copies and makes the task due", () =>
    Effect.gen(function* () {
      const { callbacks, due } = yield* withRuns
      const taken = yield* Effect.all(
        Array.from({ length: 20 }, () => callbacks.accept(callback(1, 1))),
        { concurrency: "unbounded" }
      )
      assert.deepEqual(
        taken.filter((outcome) => outcome !== "Repeated"),
        ["Due"]
      )
      assert.deepEqual(yield* due, ["none", 5])
    }).pipe(Effect.provide(store))
  )

  it.effect(
    "keeps a callback about a task in hand until its step ends, and none about an unknown task",
    () =>
      Effect.gen(function* () {
        const { callbacks, due } = yield* withRuns
        assert.strictEqual(yield* callbacks.accept(callback(7, 2)), "Due")
        assert.deepEqual(yield* due, ["none", "none"])
        assert.strictEqual(yield* callbacks.accept(callback(0, 3)), "InHand")
        assert.deepEqual(yield* due, [5, "none"])
      }).pipe(Effect.provide(store))
  )

  it.effect(
    "makes the task due at the end of an interval if only the address proves the callback",
    () =>
      Effect.gen(function* () {
        const { callbacks, due } = yield* withRuns
        assert.strictEqual(yield* callbacks.accept({ ...callback(1, 1), dueAt: at(6) }), "Due")
        assert.deepEqual(yield* due, ["none", 6])
        assert.strictEqual(yield* callbacks.accept({ ...callback(1, 2), dueAt: at(12) }), "Due")
        assert.deepEqual(yield* due, ["none", 6])
      }).pipe(Effect.provide(store))
  )

  it.effect("ignores a replay", () =>
    Effect.gen(function* () {
      const { callbacks, due } = yield* withRuns
      const sql = yield* SqlClient.SqlClient
      assert.strictEqual(yield* callbacks.accept(callback(1, 1)), "Due")
      yield* sql`UPDATE runs SET callback_received = false`
      assert.strictEqual(yield* callbacks.accept(callback(1, 1)), "Repeated")
      assert.deepEqual(yield* due, ["none", "none"])
    }).pipe(Effect.provide(store))
  )

  it.effect("records when the vendor last called back for an account, to within ten seconds", () =>
    Effect.gen(function* () {
      const { callbacks } = yield* withRuns
      const pacing = yield* PollPacingStore
      const called = (accountId = "fal-queue@fal:a") =>
        Effect.map(pacing.calledAt(accountId), Option.getOrNull)
      const seconds = (byte: number, after: number) => ({
        ...callback(1, byte),
        now: DateTime.makeUnsafe(300_000 + after * 1000)
      })
      assert.isNull(yield* called())
      yield* callbacks.accept(seconds(1, 0))
      assert.strictEqual(yield* called(), 300_000)
      yield* callbacks.accept(seconds(2, 9))
      assert.strictEqual(yield* called(), 300_000)
      yield* callbacks.accept(seconds(2, 20))
      assert.strictEqual(yield* called(), 300_000, "a replay does not count")
      yield* callbacks.accept(seconds(3, 20))
      assert.strictEqual(yield* called(), 320_000)
      assert.isNull(yield* called("another"))
    }).pipe(Effect.provide(store))
  )

  it.effect("removes callbacks once they are too old to be accepted, and not before", () =>
    Effect.gen(function* () {
      const { callbacks } = yield* withRuns
      assert.strictEqual(yield* callbacks.accept(callback(0, 1)), "InHand")
      yield* callbacks.deleteExpired(at(15))
      assert.strictEqual(yield* callbacks.accept(callback(0, 1)), "Repeated")
      yield* callbacks.deleteExpired(at(16))
      assert.strictEqual(yield* callbacks.accept(callback(0, 1)), "InHand")
    }).pipe(Effect.provide(store))
  )
})
