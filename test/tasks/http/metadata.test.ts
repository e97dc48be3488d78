import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TaskId } from "../../../src/domain/Ids.ts"
import { TaskRetentionStore } from "../../../src/tasks/privacy/TaskRetentionStore.ts"
import { WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const text = JSON.stringify

/** docs/reference/tasks.md#metadata */
layer(layerGateway({ database: stores.postgres }))("metadata", (it) => {
  it.effect("is in GET, lists and events as it was given, and absent if it was not given", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      yield* user.call("POST", "/manage/v1/webhook-endpoints", {
        url: "https://hooks.example.com/a",
        events: ["task.created", "task.succeeded", "task.failed"]
      })
      const given = JSON.parse('{"order":"17","a":"é\\n","__proto__":"own","2":"b]","x]y":""}')
      const bodies = [
        { prompt: "a", metadata: given },
        { prompt: "[[sim:fail]]", metadata: { order: "17" } },
        { prompt: "a" },
        { prompt: "a", metadata: {} }
      ]
      const ids: Array<string> = []
      for (const body of bodies) {
        const created = yield* user.call("POST", path, body)
        assert.strictEqual(created.status, 202, created.text)
        assert.hasAllKeys(created.json, ["task_info"])
        ids.push(created.json.task_info.id)
      }
      const young = yield* user.call("GET", `${path}/${ids[0]}`)
      yield* advance("30 seconds")
      const log = yield* WebhookSenderLog
      const sent = yield* eventually(log.sent, (all) => all.length === 8)
      const events = sent.map(({ request }) => JSON.parse(new TextDecoder().decode(request.body)))
      const payload = (id: string | undefined, type: RegExp) =>
        text(
          events.find(({ data, type: of }) => data.payload.task_info.id === id && type.test(of))
            .data.payload
        )
      const processing = payload(ids[0], /created/).replace("pending", "processing")
      assert.include([payload(ids[0], /created/), processing], young.text)
      assert.strictEqual(text(young.json.metadata), text(given))
      for (const id of ids) {
        const read = yield* user.call("GET", `${path}/${id}`)
        assert.strictEqual(payload(id, /succeeded|failed/), read.text)
      }
      const { data } = (yield* user.call("GET", "/manage/v1/tasks")).json
      const listed = (id: string) => text(data.find((it: { id: string }) => it.id === id).metadata)
      assert.deepStrictEqual(ids.map(listed), [
        text(given),
        text({ order: "17" }),
        undefined,
        text({})
      ])
      const one = yield* user.call("GET", `/manage/v1/tasks/${ids[0]}`)
      assert.strictEqual(text(one.json.metadata), text(given))
      assert.notProperty(one.json.body, "metadata")
      const found = (query: string) =>
        Effect.map(user.call("GET", `/manage/v1/tasks?${query}`), (answer) => {
          assert.strictEqual(answer.status, 200, answer.text)
          return answer.json.data.map((it: { id: string }) => ids.indexOf(it.id)).toSorted()
        })
      assert.deepStrictEqual(yield* found("metadata[order]=17"), [0, 1])
      assert.deepStrictEqual(yield* found("metadata[order]=17&status=completed"), [0])
      assert.deepStrictEqual(yield* found("metadata[order]=17&metadata[2]=b]"), [0])
      assert.deepStrictEqual(yield* found("metadata%5Bx%5Dy%5D="), [0])
      assert.deepStrictEqual(yield* found("metadata[__proto__]=own"), [0])
      assert.deepStrictEqual(yield* found("metadata[order]=1"), [])
      for (const query of [
        "metadata=1",
        "metadata[a]=1&metadata[a]=2",
        "metadata[a]=%00",
        "metadata[%00]=a"
      ]) {
        const { json, status } = yield* user.call("GET", `/manage/v1/tasks?${query}`)
        assert.deepStrictEqual([status, json.code], [400, 2001], query)
      }
      const store = yield* TaskRetentionStore
      yield* store.scrubBefore(TaskId.make("ffffffff-0000-7000-8000-000000000000"), 100)
      assert.notProperty((yield* user.call("GET", `${path}/${ids[0]}`)).json, "metadata")
    })
  )
})

layer(layerGateway(), { timeout: "60 seconds" })("metadata that is refused", (it) => {
  it.effect("names the pointer of every fault, and creates nothing", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const faultsOf = (metadata: unknown, query = "") =>
        Effect.map(
          user.call("POST", `${path}${query}`, { prompt: "a", metadata }),
          ({ json, status }) => {
            assert.deepStrictEqual([status, json.code], [400, 2001])
            return json.errors.map((it: { pointer: string }) => it.pointer)
          }
        )
      const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, "v"]))
      assert.deepStrictEqual(yield* faultsOf(many), ["#/metadata"])
      assert.deepStrictEqual(yield* faultsOf({ a: 1, b: null }), ["#/metadata/a", "#/metadata/b"])
      assert.deepStrictEqual(yield* faultsOf({ "": "v" }), ["#/metadata/"])
      assert.deepStrictEqual(yield* faultsOf({ a: "x".repeat(513) }), ["#/metadata/a"])
      assert.deepStrictEqual(yield* faultsOf({ a: "\u0000" }, "?dry_run=true"), ["#/metadata/a"])
      assert.lengthOf(yield* faultsOf({ ["k".repeat(65)]: "v" }), 1)
      for (const other of [null, [], "a"]) {
        assert.deepStrictEqual(yield* faultsOf(other), ["#/metadata"])
      }
      // Measured in code points; the longest possible metadata fit an event
      const largest = Object.fromEntries(
        Array.from({ length: 16 }, (_, n) => [
          `${String.fromCodePoint(0x1f600 + n)}${"\u0001".repeat(63)}`,
          "\u0001".repeat(512)
        ])
      )
      const created = yield* user.call("POST", path, { prompt: "a", metadata: largest })
      assert.strictEqual(created.status, 202)
      const { data } = (yield* user.call("GET", "/manage/v1/tasks")).json
      assert.lengthOf(data, 1)
      const { json, text: body } = yield* user.call("GET", `${path}/${created.json.task_info.id}`)
      assert.deepStrictEqual(json.metadata, largest)
      assert.isBelow(body.length, 60_000)
    })
  )
})
