import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { TaskBatchId, TaskId, UserId } from "../../../src/domain/Ids.ts"
import { filterOfText } from "../../../src/tasks/history/SearchText.ts"
import type { TaskHistoryStore } from "../../../src/tasks/history/TaskHistoryStore.ts"

const user = UserId.make("019a0c5e-0000-7000-8000-000000000001")
const task = TaskId.make("019a0c5e-7f3a-7a00-9e2b-000000000004")
const batchId = TaskBatchId.make(`tb_${"0".repeat(32)}`)

/** Knows one create by its idempotency key and nothing else. */
const store = (answer?: unknown): TaskHistoryStore["Service"] => ({
  search: () => Effect.succeed({ rows: [], end: null }),
  some: () => Effect.succeed([]),
  find: () => Effect.succeedNone,
  attempts: () => Effect.succeed([]),
  answerTo: () =>
    Effect.succeed(Option.fromUndefinedOr(answer).pipe(Option.map((it) => String(it))))
})

/** docs/reference/tasks.md#search */
describe("the text of a search", () => {
  it.effect("means words of the last 30 days, unless it is the id of something", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.parse("2026-11-26T00:00:00Z"))
      const first = DateTime.makeUnsafe("2026-10-27T00:00:00Z")
      const filter = filterOfText(store())
      for (const text of ["a  lighthouse", task, "0".repeat(32)]) {
        const found = yield* filter(user, text, undefined)
        assert.deepStrictEqual(found, { words: text.split(/\s+/u), since: first }, text)
      }
      const later = DateTime.makeUnsafe("2026-11-20T00:00:00Z")
      const earlier = DateTime.makeUnsafe("2026-01-01T00:00:00Z")
      assert.deepStrictEqual((yield* filter(user, "a", later)).since, later)
      assert.deepStrictEqual((yield* filter(user, "a", earlier)).since, first)
    })
  )

  it.effect(
    "means an idempotency key of a create of one or several tasks or of a batch, if there is one",
    () =>
      Effect.gen(function* () {
        const created = (id: string) => ({ task_info: { id, action: "generation" } })
        for (const [answer, expected] of [
          [created(task), { ids: [task] }],
          [{ tasks: [created(task), created(task)] }, { ids: [task, task] }],
          [{ id: batchId, tasks: 2 }, { batchId }]
        ] as const) {
          const filter = filterOfText(store(JSON.stringify(answer)))
          assert.deepStrictEqual(yield* filter(user, "order", undefined), expected)
        }
        const words = yield* filterOfText(store("?"))(user, "order", undefined)
        assert.deepStrictEqual(words.words, ["order"])
      })
  )
})
