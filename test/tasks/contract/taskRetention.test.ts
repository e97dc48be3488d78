import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { AppConfig } from "../../../src/config/Config.ts"
import { makeTaskId, makeUserId } from "../../../src/domain/Ids.ts"
import { TaskRetention } from "../../../src/tasks/privacy/TaskRetention.ts"
import { TaskRetentionStore } from "../../../src/tasks/privacy/TaskRetentionStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { describeStores } from "../../support/stores.ts"

const user = makeUserId(1)

/** A task created now, with an attempt; an unfinished one has a run. */
const makeTask = Effect.fnUntraced(function* (isRunning = false) {
  const sql = yield* SqlClient
  const now = yield* DateTime.now
  const id = makeTaskId(DateTime.toEpochMillis(now))
  const at = DateTime.toDateUtc(now)
  yield* sql`
    INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price,
      created_at, updated_at)
    VALUES (${id}, ${user}, 'v', 'm', 'generation', 'images', ${isRunning ? "pending" : "completed"},
      '{"prompt":"p"}', true, 0, ${at}, ${at})`
  yield* sql`
    INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, started_at)
    VALUES (${id}, 1, 'v', 'a', '', 'submitted', ${at})`
  if (isRunning) yield* sql`INSERT INTO runs (task_id, deadline_at) VALUES (${id}, ${at})`
  return id
})

const state = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql`SELECT id, body ->> 'prompt' AS prompt FROM tasks ORDER BY id`
  return rows.map((row) => [row["id"], row["prompt"]])
})

const retention = (env: Readonly<Record<string, string>>) =>
  TaskRetention.layer.pipe(
    Layer.provide(AppConfig.layerOf(env)),
    Layer.provide(TaskRetentionStore.layer)
  )

const maintain = (env: Readonly<Record<string, string>>) =>
  Effect.flatMap(TaskRetention, (it) => it.maintain).pipe(
    Effect.provide(retention(env), { local: true })
  )

describeStores("tasks and their bodies", (database) => {
  // The store's clock is real; only the times in its statements come from the test
  liveLayer(database)((it) => {
    it.effect(
      "are kept forever by default, else deleted by age, and never before the task has ended",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          yield* TestClock.setTime(Date.parse("2026-01-01T00:00:00Z"))
          const [first, second] = [yield* makeTask(), yield* makeTask()].sort()
          yield* TestClock.adjust("20 days")
          const third = yield* makeTask()
          yield* TestClock.adjust("2000 days")
          yield* maintain({})
          const all = [first, second, third].map((id) => [id, "p"])
          assert.deepStrictEqual(yield* state, all)

          yield* TestClock.setTime(Date.parse("2026-01-25T00:00:00Z"))
          const both = { BODY_RETENTION: "7 days", TASK_RETENTION: "30 days" }
          yield* maintain(both)
          assert.deepStrictEqual(yield* state, [
            [first, null],
            [second, null],
            [third, "p"]
          ])
          // Tasks after an unfinished one wait for it
          const running = yield* makeTask(true)
          yield* TestClock.adjust("1 day")
          const last = yield* makeTask()
          yield* TestClock.adjust("10 days")
          yield* maintain(both)
          assert.deepStrictEqual(yield* state, [
            [third, null],
            [running, "p"],
            [last, "p"]
          ])
          const attempts = yield* sql`SELECT task_id FROM vendor_attempts ORDER BY 1`
          assert.deepStrictEqual(
            attempts.map((row) => row["taskId"]),
            [third, running, last]
          )
          yield* sql`DELETE FROM runs`
          yield* sql`UPDATE tasks SET status = 'failed' WHERE id = ${running}`
          yield* maintain(both)
          assert.deepStrictEqual(yield* state, [
            [third, null],
            [running, null],
            [last, null]
          ])
          yield* TestClock.adjust("60 days")
          yield* maintain(both)
          assert.deepStrictEqual(yield* state, [])
        }).pipe(Effect.provide(TestClock.layer()))
    )

    it.effect("are deleted with their batch when none of its tasks is left", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* TestClock.setTime(Date.parse("2028-01-01T00:00:00Z"))
        yield* sql`
          INSERT INTO task_batches (id, user_id, tasks, held, created_at)
          VALUES ('batch', ${user}, 3, 0, to_timestamp(0))`
        const makeOne = Effect.flatMap(
          makeTask(),
          (id) => sql`UPDATE tasks SET batch_id = 'batch' WHERE id = ${id}`
        )
        const batches = Effect.andThen(
          maintain({ TASK_RETENTION: "30 days" }),
          sql`SELECT FROM task_batches`
        )
        yield* makeOne
        yield* makeOne
        yield* TestClock.adjust("20 days")
        yield* makeOne
        yield* TestClock.adjust("20 days")
        assert.lengthOf(yield* batches, 1)
        assert.lengthOf(yield* state, 1)
        yield* TestClock.adjust("20 days")
        assert.isEmpty(yield* batches)
        assert.isEmpty(yield* state)
      }).pipe(Effect.provide(TestClock.layer()))
    )

    it.effect(
      "are deleted with the requests of batches of messages, but not with users' own files",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          yield* TestClock.setTime(Date.parse("2027-01-01T00:00:00Z"))
          const files = sql`SELECT id FROM files WHERE expires_at > created_at ORDER BY id`
          const addBatches = Effect.forEach(["anthropic", "openai"], (vendor) =>
            Effect.gen(function* () {
              yield* sql`
              UPDATE tasks SET vendor = ${vendor}, result_kind = 'batches',
                body = jsonb_build_object('input_file_id', ${vendor}::text)
              WHERE id = ${yield* makeTask()}`
              yield* sql`
              INSERT INTO files (id, user_id, purpose, filename, bytes, created_at, expires_at)
              VALUES (${vendor}, ${user}, 'batch', '', 1, to_timestamp(0), to_timestamp(1))
              ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at`
            })
          )
          const names = Effect.map(sql`SELECT custom_id FROM batch_receipts`, (rows) =>
            rows.map(({ customId }) => customId)
          )
          for (const [setting, left] of [
            ["BODY_RETENTION", [null, null]],
            ["TASK_RETENTION", []]
          ] as const) {
            yield* addBatches
            yield* sql`
              INSERT INTO batch_receipts (user_id, id, custom_id, model, outcome, captured, created_at)
              SELECT user_id, id || '.1', 'n', 'm', 'settled', 0, created_at FROM tasks WHERE body <> 'null'`
            yield* maintain({ [setting]: "7 days" })
            assert.lengthOf(yield* files, 2)
            yield* TestClock.adjust("8 days")
            yield* maintain({ [setting]: "7 days" })
            assert.deepStrictEqual<object>(yield* files, [{ id: "openai" }])
            assert.deepStrictEqual<ReadonlyArray<unknown>>(yield* names, left)
          }
        }).pipe(Effect.provide(TestClock.layer()))
    )
  })
})
