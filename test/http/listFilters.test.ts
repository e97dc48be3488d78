import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { advance, eventually, layerGateway, makeUser } from "../support/gateway.ts"
import { stores } from "../support/stores.ts"

/** docs/reference/http.md#lists */

const image = "/vendors/alibaba/v1/text-to-image-max/generation"

for (const store of ["embedded", "postgres"] as const) {
  describe(`filters of lists (${store})`, () => {
    layer(layerGateway({ database: stores[store] }), { timeout: "60 seconds" })((it) => {
      it.effect("tasks, calls, deliveries and the ledger by key, model, trace, time and cost", () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 1000 })
          const trace = "0af7651916cd43dd8448eb211c80319c"
          const traced = { traceparent: `00-${trace}-b7ad6b7169203331-01` }
          yield* user.call("POST", "/manage/v1/webhook-endpoints", {
            url: "https://hooks.example.com/a",
            events: ["task.created"]
          })
          const made: Array<string> = []
          for (const headers of [{}, traced, {}]) {
            yield* advance("1 minute")
            const created = yield* user.call("POST", image, { prompt: "a" }, headers)
            made.push(created.json.task_info.id)
            yield* advance("15 seconds", "1 second")
            yield* eventually(
              user.call("GET", `${image}/${made.at(-1)}`),
              ({ json }) => json.task_info.status === "completed"
            )
            const body = { model: "gpt-4o", messages: [{ role: "user", content: "hello" }] }
            yield* user.call("POST", "/v1/chat/completions", body, headers)
          }
          const read = (path: string) =>
            Effect.map(user.call("GET", `/manage/v1/${path}`), ({ json, text }) => {
              assert.isArray(json.data, text)
              return json.data
            })
          const calls = yield* eventually(read("calls"), (data) => data.length === 3)
          const { data: keys } = (yield* user.call("GET", "/manage/v1/api-keys")).json
          const tasksOf = (query: string) =>
            Effect.map(read(`tasks?${query}`), (data) => data.map((it: { id: string }) => it.id))
          assert.deepStrictEqual(yield* tasksOf(`trace_id=${trace}`), [made[1]])
          assert.deepStrictEqual(yield* tasksOf(`api_key_id=${keys[0].id}`), made.toReversed())
          assert.deepStrictEqual(yield* tasksOf("api_key_id=key_other"), [])
          assert.deepStrictEqual(yield* tasksOf("min_cost=7.50&max_cost=7.50"), made.toReversed())
          assert.deepStrictEqual(yield* tasksOf("min_cost=7.51"), [])
          const second = (yield* read("tasks"))[1].created_at
          assert.deepStrictEqual(yield* tasksOf(`since=${second}`), [made[2], made[1]])
          assert.deepStrictEqual(yield* tasksOf(`until=${second}`), [made[0]])
          const [call] = yield* read(`calls?trace_id=${trace}`)
          assert.strictEqual(call.id, calls[1].id)
          assert.strictEqual((yield* read("calls?model=gpt-4o&outcome=settled")).length, 3)
          assert.strictEqual((yield* read("calls?outcome=lost")).length, 0)
          assert.strictEqual((yield* read(`calls?api_key_id=${keys[0].id}&min_cost=900`)).length, 0)
          assert.strictEqual((yield* read(`calls?until=${call.created_at}`)).length, 1)
          const entries = yield* read(`wallet/entries?trace_id=${trace}&kind=hold`)
          assert.deepStrictEqual(
            entries.map((it: { task_id: string }) => it.task_id),
            [call.id, made[1]]
          )
          assert.strictEqual((yield* read("wallet/entries?min_amount=1000")).length, 1)
          const [delivery, ...others] = yield* read(`webhook-deliveries?trace_id=${trace}`)
          assert.isEmpty(others)
          assert.strictEqual(delivery.task_id, made[1])
          assert.deepStrictEqual(yield* read(`webhook-deliveries?task_id=${made[1]}`), [delivery])
          for (const query of [
            "tasks?trace_id=1",
            "tasks?api_key_id=sk-1",
            "tasks?min_cost=much",
            "calls?outcome=odd",
            "calls?since=yesterday",
            "webhook-deliveries?task_id=1",
            "wallet/entries?max_amount=x",
            // No row can contain it, and Postgres refuses it
            "calls?vendor=%00",
            "calls?model=gpt%00",
            "usage?vendor=%00",
            "usage?model=gpt%00",
            `usage?group_by=model&cursor=${Buffer.from(String.raw`["group,model","0","\u0000"]`).toString("base64url")}`
          ]) {
            const refused = yield* user.call("GET", `/manage/v1/${query}`)
            assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001], query)
          }
        })
      )
    })
  })
}
