import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import {
  adminToken,
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser
} from "../../support/gateway.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"

const manage = "/manage/v1"
const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
const traceparent = `00-${trace}-00f067aa0ba902b7-01`
const read = (place: string) => callWith(adminToken)("GET", `${manage}${place}`)

const vendor = await mockOpenAi()
vendor.script = openAiScript
const env = { OPENAI_API_KEY: `sk-secret-aaaa;name=a;base=${vendor.origin}/v1` }

/** docs/reference/keys-and-limits.md#over-all-users */
layer(layerGateway({ env }), { timeout: "60 seconds" })("the operator over all users", (it) => {
  it.effect("finds an object by its id or trace, with its user", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const [first, second] = [yield* makeUser(), yield* makeUser()]
      const made = yield* first.call("POST", path, { prompt: "A secret wave" }, { traceparent })
      const task = made.json.task_info.id
      yield* second.call(
        "POST",
        "/v1/chat/completions",
        { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] },
        { traceparent }
      )
      const calls = yield* eventually(
        second.call("GET", `${manage}/calls`),
        ({ json }) => json.data.length > 0
      )
      const call = calls.json.data[0].id
      const hook = yield* first.call("POST", `${manage}/webhook-endpoints`, {
        url: "https://hooks.example.com/a",
        events: ["task.succeeded"]
      })
      const endpoint = hook.json.id
      const sent = yield* first.call("POST", `${manage}/webhook-endpoints/${endpoint}/test`)
      const tasks = [{ vendor: "alibaba", model: "text-to-image-max", body: { prompt: "a" } }]
      const batch = yield* first.call("POST", `${manage}/task-batches`, { tasks })
      const [key] = (yield* first.call("GET", `${manage}/api-keys`)).json.data
      yield* advance("10 seconds")
      const [event] = yield* sql`SELECT id FROM events WHERE task_id = ${task} LIMIT 1`
      const find = (q: string) =>
        Effect.map(read(`/operator/search?q=${encodeURIComponent(q)}`), (answer) => {
          assert.strictEqual(answer.status, 200, answer.text)
          return answer.json.data
        })
      for (const [id, type, owner] of [
        [task, "task", first],
        [call, "call", second],
        [first.id, "user", first],
        [key.id, "api_key", first],
        [endpoint, "webhook_endpoint", first],
        [sent.json.delivery_id, "webhook_delivery", first],
        [batch.json.id, "task_batch", first],
        [String(event!["id"]), "event", first]
      ] as const) {
        const [found, ...more] = yield* find(` ${id} `)
        assert.isEmpty(more, id)
        assert.deepInclude(found, { type, id }, id)
        const { email } = (yield* read(`/users/${owner.id}`)).json
        assert.deepStrictEqual(found.user, { id: owner.id, email })
        assert.match(found.created_at, /^\d{4}-.*Z$/u)
        assert.deepStrictEqual(Object.keys(found), ["type", "id", "user", "created_at"])
      }
      const traced = yield* find(trace)
      assert.sameDeepMembers(
        traced.map((it: { type: string; id: string; user: { id: string } }) => [
          it.type,
          it.id,
          it.user.id
        ]),
        [
          ["task", task, first.id],
          ["call", call, second.id]
        ]
      )
      const { email } = (yield* read(`/users/${second.id}`)).json
      assert.deepInclude((yield* find(email.toUpperCase()))[0], { type: "user", id: second.id })
      for (const q of [
        "0".repeat(32),
        "00000000-0000-7000-8000-000000000000",
        "key_unknown",
        "whd_unknown",
        "nobody@nowhere",
        "%"
      ]) {
        assert.deepStrictEqual(yield* find(q), [], q)
      }
      for (const q of ["?", "?q=", "?q=%20"]) {
        assert.strictEqual((yield* read(`/operator/search${q}`)).json.code, 2001, q)
      }
    })
  )

  it.effect("lists tasks and calls of all users, filtered, without any content", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* makeUser(), yield* makeUser()]
      const ids: Array<string> = []
      for (const [user, prompt] of [
        [first, "a secret"],
        [second, "[[sim:fail]] secret"],
        [second, "a secret"]
      ] as const) {
        const body = { prompt, metadata: { name: "secret" } }
        ids.unshift((yield* user.call("POST", path, body)).json.task_info.id)
        yield* advance("10 seconds")
      }
      const list = (query: string) =>
        Effect.map(read(`/operator/tasks?limit=3${query}`), (answer) => {
          assert.strictEqual(answer.status, 200, answer.text)
          return answer.json
        })
      const all = yield* eventually(list(""), ({ data }) =>
        data.every((it: { ended_at: string | null }) => it.ended_at !== null)
      )
      const idsOf = ({ data }: { data: ReadonlyArray<{ id: string }> }) => data.map(({ id }) => id)
      assert.deepStrictEqual(idsOf(all), ids)
      assert.notInclude(JSON.stringify(all), "secret")
      assert.deepStrictEqual(Object.keys(all.data[1].error), ["code", "title"])
      assert.strictEqual(all.data[2].user.id, first.id)
      assert.match(all.data[2].user.email, /@/u)
      assert.deepStrictEqual(idsOf(yield* list("&status=failed")).slice(0, 1), [ids[1]])
      assert.deepStrictEqual(idsOf(yield* list(`&user_id=${first.id}`)), [ids[2]])
      assert.deepStrictEqual(idsOf(yield* list(`&trace_id=${all.data[0].trace_id}`)), [ids[0]])
      assert.deepStrictEqual(idsOf(yield* list(`&until=${all.data[1].created_at}`)).slice(0, 1), [
        ids[2]
      ])
      assert.deepStrictEqual(idsOf(yield* list("&model=image-edit")), [])
      const next = yield* read(`/operator/tasks?limit=1`)
      const page = yield* read(`/operator/tasks?limit=1&cursor=${next.json.next_cursor}`)
      assert.deepStrictEqual(idsOf(page.json), [ids[1]])

      const chat = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }
      for (const user of [first, second]) {
        yield* user.call("POST", "/v1/chat/completions", chat)
        yield* advance("1 second")
      }
      const calls = (query: string) => read(`/operator/calls?limit=2${query}`)
      const both = yield* eventually(
        calls(""),
        ({ json }) => json.data[0]?.user.id === second.id && json.data[1]?.user.id === first.id
      )
      assert.deepInclude(both.json.data[0], { vendor: "openai", model: "gpt-4o" })
      const [, older] = both.json.data
      for (const query of [
        `&user_id=${first.id}`,
        `&trace_id=${older.trace_id}`,
        `&until=${both.json.data[0].created_at}`
      ]) {
        assert.strictEqual((yield* calls(query)).json.data[0].id, older.id, query)
      }
      assert.isEmpty((yield* calls("&outcome=lost")).json.data)
    })
  )

  it.effect("lists users by address, state, balance and what they spent this month", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const make = Effect.fnUntraced(function* (name: string, credits: number) {
        const { id, call } = yield* makeUser({ credits })
        const email = `${name}@List.example.com`
        const changed = yield* callWith(adminToken)("PATCH", `${manage}/users/${id}`, {
          email,
          name: `Ms ${name}`
        })
        assert.strictEqual(changed.status, 200, changed.text)
        yield* advance("10 millis")
        return { id, call }
      })
      const rich = yield* make("rich", 5000)
      const poor = yield* make("poor", 20)
      const shut = yield* make("shut", 100)
      yield* callWith(adminToken)("PATCH", `${manage}/users/${shut.id}`, { disabled: true })
      yield* poor.call("POST", path, { prompt: "a" })
      yield* advance("10 seconds")
      const list = (query: string) =>
        Effect.map(read(`/users?q=list.example${query}`), (answer) => {
          assert.strictEqual(answer.status, 200, answer.text)
          return answer.json
        })
      const idsOf = ({ data }: { data: ReadonlyArray<{ id: string }> }) => data.map(({ id }) => id)
      const [a, b, c] = [shut.id, poor.id, rich.id]
      yield* eventually(list(""), ({ data }) => data[1].spent_this_month === "7.50")
      const all = yield* list("")
      assert.deepStrictEqual(idsOf(all), [a, b, c])
      assert.deepInclude(all.data[1], {
        available_balance: "12.50",
        settled_balance: "12.50",
        spent_this_month: "7.50"
      })
      assert.deepStrictEqual(idsOf(yield* list("&state=disabled")), [a])
      assert.deepStrictEqual(idsOf(yield* list("&state=active")), [b, c])
      assert.deepStrictEqual(idsOf(yield* list("&state=alerted")), [])
      assert.deepStrictEqual(idsOf(yield* list("&state=negative")), [])
      // The state that a late charge leaves, without the entries that the trigger checks
      yield* sql.withTransaction(
        Effect.andThen(
          sql`SET LOCAL session_replication_role = replica`,
          sql`UPDATE wallets SET settled = -1, state = 'ALERTED' WHERE user_id = ${c}`
        )
      )
      assert.deepStrictEqual(idsOf(yield* list("&state=negative")), [c])
      assert.deepStrictEqual(idsOf(yield* list("&state=alerted")), [c])
      assert.deepStrictEqual(idsOf(yield* list("&sort=balance")), [c, b, a])
      assert.deepStrictEqual(idsOf(yield* list("&sort=balance&limit=1")), [c])
      assert.isNull((yield* list("&sort=balance&limit=1")).next_cursor)
      assert.deepStrictEqual(idsOf(yield* list("&sort=spent")), [b])
      const first = yield* list("&limit=1")
      assert.deepStrictEqual(idsOf(yield* list(`&limit=1&cursor=${first.next_cursor}`)), [b])
      for (const q of [poor.id, "POOR@list.example.com", "ms poor"]) {
        const { json } = yield* read(`/users?q=${encodeURIComponent(q)}`)
        assert.deepStrictEqual(idsOf(json), [b], q)
      }
      assert.deepStrictEqual((yield* read("/users?q=l%25t")).json.data, [])
      for (const query of ["state=odd", "sort=odd", "q="]) {
        assert.strictEqual((yield* read(`/users?${query}`)).json.code, 2001, query)
      }
    })
  )
})
