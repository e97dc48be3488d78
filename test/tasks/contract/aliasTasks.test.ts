import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import * as Credits from "../../../src/domain/Credits.ts"
import { TaskId } from "../../../src/domain/Ids.ts"
import type { Candidate } from "../../../src/domain/task/Candidate.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import * as TaskStoreLive from "../../../src/tasks/TaskStoreLive.ts"
import { withoutJob } from "../../support/owned.ts"
import { describeStores } from "../../support/stores.ts"

const at = (seconds: number) => DateTime.makeUnsafe(seconds * 1000)
const id = TaskId.make("00000000-0000-7000-8000-000000000001")

const candidates: ReadonlyArray<Candidate> = ["one", "two"].map((model) => ({
  vendor: "v",
  model,
  price: Credits.make(1000n),
  skipped: null
}))

/** The task of an alias with two models, at the first one, with a slot. */
const insert = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const stored = candidates.map((it) => ({ ...it, price: "1000" }))
  yield* sql`
    INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price,
      created_at, updated_at, candidates, candidate)
    VALUES (${id}, gen_random_uuid(), 'v', 'fast', 'generation', 'images', 'pending', '{}', true, 0,
      to_timestamp(0), to_timestamp(0), ${JSON.stringify(stored)}::text::jsonb, 0)`
  yield* sql`
    INSERT INTO runs (task_id, deadline_at, queue, due_at, slot_key, slot_held)
    VALUES (${id}, to_timestamp(1000), 'v/one/submits', to_timestamp(0), 'slots', true)`
})

const claim = (queue: string, owner = "proc_a") =>
  Effect.flatMap(TaskStore, (tasks) => tasks.claim({ queue, limit: 10, owner, now: at(1) }))

const passed = (skippedAt: number) => ({
  candidate: 1,
  candidates: candidates.map(({ model, price, vendor }, index) => ({
    vendor,
    model,
    price,
    skipped: index > 0 ? null : { reason: "rate_limited" as const, at: at(skippedAt), attempt: 1 }
  }))
})

describeStores("tasks of aliases", (database) => {
  const store = TaskStoreLive.layer.pipe(Layer.provideMerge(database))

  it.effect("record a refusal, take the next model and give up the slot in one statement", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const tasks = yield* TaskStore
      yield* insert
      const [owned] = yield* claim("v/one/submits")
      const start = {
        taskId: id,
        n: 1,
        vendor: "v",
        accountId: "a",
        bodyHash: new Uint8Array(32),
        queue: { name: "v/one/submits" },
        now: at(1)
      }
      const attempt = {
        n: 1,
        state: "refused",
        handle: null,
        failure: "RATE_LIMITED: busy"
      } as const
      const end = {
        taskId: id,
        attempt,
        next: { dueAt: at(2), queue: { name: "v/two/submits" }, inputs: {} },
        pass: passed(2),
        now: at(2)
      }
      assert.isTrue(yield* tasks.beginAttempt({ ...start, epoch: owned!.epoch }))
      assert.isFalse(yield* tasks.endStep({ ...end, epoch: owned!.epoch - 1 }), "fenced")
      assert.strictEqual(Option.getOrThrow(yield* tasks.view(id)).candidate, 0)
      assert.isTrue(yield* tasks.endStep({ ...end, epoch: owned!.epoch }))
      const [run] = yield* sql`SELECT slot_key, slot_held, owner FROM runs`
      assert.deepStrictEqual(run, { slotKey: null, slotHeld: false, owner: null })
      const [again] = yield* Effect.flatMap(TaskStore, (it) =>
        it.claim({ queue: "v/two/submits", limit: 1, owner: "proc_b", now: at(3) })
      )
      assert.deepStrictEqual(again!.task.candidates, passed(2).candidates)
      assert.strictEqual(again!.task.candidate, 1)
      assert.deepStrictEqual(
        Option.map(withoutJob(again).attempt, ({ n, state }) => [n, state]),
        Option.some([1, "refused"])
      )
    }).pipe(Effect.provide(store))
  )
})
