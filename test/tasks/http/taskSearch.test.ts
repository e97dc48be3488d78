import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TaskId } from "../../../src/domain/Ids.ts"
import { TaskRetentionStore } from "../../../src/tasks/privacy/TaskRetentionStore.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

/** docs/reference/tasks.md#search */
layer(layerGateway(), { timeout: "60 seconds" })("a search among tasks", (it) => {
  it.effect("finds a user's own tasks by words of the prompt, by metadata and by every id", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const other = yield* makeUser()
      const bodies = [
        { prompt: "A Lighthouse at dawn" },
        { prompt: "100% of_the harbor \\ É", metadata: { order: "Fischer-17" } },
        { prompt: "Dawn over the harbor" }
      ]
      const ids: Array<string> = []
      for (const [n, body] of bodies.entries()) {
        const headers = {
          "idempotency-key": `order ${n}`,
          ...(n === 1 ? { traceparent: `00-${trace}-00f067aa0ba902b7-01` } : {})
        }
        const created = yield* user.call("POST", path, body, headers)
        assert.strictEqual(created.status, 202, created.text)
        ids.push(created.json.task_info.id)
        yield* advance("10 millis")
      }
      const batch = yield* user.call(
        "POST",
        "/manage/v1/task-batches",
        {
          tasks: [1, 2].map((n) => ({
            vendor: "alibaba",
            model: "text-to-image-max",
            body: { prompt: `of a batch ${n}` }
          }))
        },
        { "idempotency-key": "a whole batch" }
      )
      assert.isBelow(batch.status, 300, batch.text)
      const found = (q: string, more = "", by = user) =>
        Effect.map(
          by.call("GET", `/manage/v1/tasks?q=${encodeURIComponent(q)}${more}`),
          (answer) => {
            assert.strictEqual(answer.status, 200, answer.text)
            return answer.json.data.map((task: { id: string }) => ids.indexOf(task.id))
          }
        )
      for (const [q, expected] of [
        ["dawn", [2, 0]],
        ["  DAWN   lighthouse ", [0]],
        ["dawn nothing", []],
        ["ligh", [0]],
        ["100%", [1]],
        ["of_the \\", [1]],
        ["o_t", []],
        ["fischer harbor", [1]],
        [ids[1]!, [1]],
        [ids[1]!.toUpperCase(), [1]],
        [trace, [1]],
        ["order 2", [2]],
        ["0".repeat(32), []],
        ["00000000-0000-7000-8000-000000000000", []],
        ["a whole batch", [-1, -1]],
        [batch.json.id, [-1, -1]]
      ] as const) {
        assert.deepStrictEqual(yield* found(q), [...expected], q)
        assert.deepStrictEqual(yield* found(q, "", other), [], `other: ${q}`)
      }
      // With other filters, page by page
      assert.deepStrictEqual(yield* found("dawn", "&model=image-edit"), [])
      assert.deepStrictEqual(yield* found(ids[1]!, "&status=failed"), [])
      const first = yield* user.call("GET", "/manage/v1/tasks?q=dawn&limit=1")
      const second = yield* user.call(
        "GET",
        `/manage/v1/tasks?q=dawn&limit=1&cursor=${first.json.next_cursor}`
      )
      assert.deepStrictEqual(
        [first, second].map(({ json }) => ids.indexOf(json.data[0].id)),
        [2, 0]
      )
      for (const q of ["", "%20", "a".repeat(201), Array(11).fill("a").join("+"), "%00"]) {
        const refused = yield* user.call("GET", `/manage/v1/tasks?q=${q}`)
        assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001], q)
        assert.strictEqual(refused.json.errors[0].pointer, "#/query/q")
      }

      // As long as bodies are stored; ids are found at any age
      const store = yield* TaskRetentionStore
      yield* advance("30 seconds")
      yield* eventually(user.call("GET", "/manage/v1/tasks"), ({ json }) =>
        json.data.every((task: { ended_at: string | null }) => task.ended_at !== null)
      )
      yield* store.scrubBefore(TaskId.make("ffffffff-0000-7000-8000-000000000000"), 100)
      assert.deepStrictEqual(yield* found("dawn"), [])
      assert.deepStrictEqual(yield* found("fischer"), [])
      assert.deepStrictEqual(yield* found("order 2"), [2])
    })
  )
})
