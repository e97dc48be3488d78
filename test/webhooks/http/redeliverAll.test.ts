import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"

const manage = "/manage/v1"
const redeliver = `${manage}/webhook-deliveries/redeliver`
const queues = operator("GET", `${manage}/queues`)

/** A user with an endpoint and two deliveries that failed at the first attempt or succeeded. */
const makeWorld = Effect.gen(function* () {
  const user = yield* makeUser()
  const url = "https://hooks.example.com/a"
  const hook = { url, events: ["task.created", "task.succeeded"] }
  const id: string = (yield* user.call("POST", `${manage}/webhook-endpoints`, hook)).json.id
  for (let n = 0; n < 2; n += 1) {
    yield* TestClock.adjust("10 millis")
    yield* user.call("POST", `${manage}/webhook-endpoints/${id}/test`)
  }
  const statuses = Effect.map(user.call("GET", `${manage}/webhook-deliveries`), ({ json }) =>
    json.data.map((it: { status: string; attempt_count: number }) => it)
  )
  return { user, id, statuses }
})

layer(layerGateway(), { timeout: "120 seconds" })("deliveries that match a filter", (it) => {
  it.effect("are redelivered, all or by endpoint, status, type and time", () =>
    Effect.gen(function* () {
      const { id, statuses, user } = yield* makeWorld
      const other = yield* makeUser()
      const attempts = (n: number) =>
        eventually(statuses, (all) =>
          all.every(
            (it: { status: string; attempt_count: number }) =>
              it.status === "succeeded" && it.attempt_count === n
          )
        )
      yield* attempts(1)
      const none = { redelivered: 0, next_cursor: null }
      for (const filter of [
        {},
        { status: "failed" },
        { status: "succeeded", type: "task.created" },
        { status: "succeeded", endpoint_id: "whe_other" },
        { status: "succeeded", until: "1969-12-31T00:00:00Z" },
        { status: "succeeded", since: "2099-01-01T00:00:00Z" }
      ]) {
        const answer = yield* user.call("POST", redeliver, { filter })
        assert.deepStrictEqual([answer.status, answer.json], [202, none], JSON.stringify(filter))
      }
      const foreign = yield* other.call("POST", redeliver, { filter: { status: "succeeded" } })
      assert.deepStrictEqual(foreign.json, none)
      const wrong = yield* user.call("POST", redeliver, {
        filter: { status: "pending", type: "task.lost" }
      })
      assert.deepStrictEqual(
        wrong.json.errors.map((it: { pointer: string }) => it.pointer),
        ["#/filter/status", "#/filter/type"]
      )
      for (const without of [{}, { status: "failed" }]) {
        assert.strictEqual((yield* user.call("POST", redeliver, without)).json.code, 2001)
      }

      const body = {
        filter: { status: "succeeded", endpoint_id: id, type: "task.succeeded" }
      }
      const both = yield* user.call("POST", redeliver, body)
      assert.deepStrictEqual(both.json, { redelivered: 2, next_cursor: null })
      yield* attempts(2)
      const [newest, oldest] = (yield* user.call("GET", `${manage}/webhook-deliveries`)).json.data
      const rest = yield* user.call("POST", redeliver, { ...body, cursor: oldest.id })
      assert.deepStrictEqual(rest.json, { redelivered: 1, next_cursor: null })
      const last = yield* user.call("POST", redeliver, { ...body, cursor: newest.id })
      assert.deepStrictEqual(last.json, none)
    })
  )
})

describe("the operator's view of the queues", () => {
  const webhook = () => Effect.succeed(mockOutcome(500))
  layer(layerGateway({ webhook }), { timeout: "120 seconds" })((it) => {
    it.effect("counts unfinished, due and late work, and shows the drift", () =>
      Effect.gen(function* () {
        const empty = yield* queues
        assert.deepStrictEqual(empty.json.tasks, {
          unfinished: 0,
          waiting_for_slot: 0,
          unowned: 0,
          due: 0,
          lateness_ms: 0
        })
        const { user } = yield* makeWorld
        const image = "/vendors/alibaba/v1/text-to-image-max/generation"
        assert.strictEqual((yield* user.call("POST", image, { prompt: "x" })).status, 202)
        const busy = yield* eventually(
          queues,
          ({ json: { deliveries, tasks } }) =>
            tasks.unfinished === 1 && deliveries.in_progress === 0 && deliveries.due === 0
        )
        assert.deepInclude(busy.json.deliveries, { unfinished: 3, due: 0, lateness_ms: 0 })
        assert.strictEqual(busy.json.wallets.drift, 0)
        assert.deepStrictEqual(busy.json.wallets.drifting_user_ids, [])
        const sql = yield* SqlClient.SqlClient
        // The end of the submit writes when the next step is due
        yield* eventually(
          sql`SELECT FROM vendor_attempts WHERE state = 'submitted'`,
          (submitted) => submitted.length === 1
        )
        // A step that no process takes while the clock stands still
        const due = new Date(DateTime.toEpochMillis(yield* DateTime.now) - 2500)
        yield* sql`UPDATE runs SET owner = NULL, due_at = ${due}`
        const late = yield* queues
        assert.deepInclude(late.json.tasks, { unowned: 1, due: 1, lateness_ms: 2500 })
        const permitIn = (millis: number) => sql`
          INSERT INTO rate_leases AS l (key, next_at, spacing)
          SELECT queue, due_at + ${2500 + millis} * interval '1 ms', '30 s' FROM runs
          ON CONFLICT (key) DO UPDATE SET next_at = excluded.next_at, spacing = excluded.spacing`
        yield* permitIn(60_000)
        const waiting = yield* queues
        assert.deepInclude(waiting.json.tasks, { unowned: 1, due: 0, lateness_ms: 0 })
        yield* permitIn(-1000)
        const free = yield* queues
        assert.deepInclude(free.json.tasks, { unowned: 1, due: 1, lateness_ms: 1000 })
        const refused = yield* user.call("GET", `${manage}/queues`)
        assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004])
      })
    )
  })
})
