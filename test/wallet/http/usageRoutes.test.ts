import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { millisAt, placeOf } from "../../../src/domain/Durations.ts"
import { advance, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/usage.md#api */

const usage = "/manage/v1/usage"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"

const run = Effect.fnUntraced(function* (user: User, tasks: number, calls: number) {
  for (let n = 0; n < tasks; n++) {
    const created = yield* user.call("POST", image, { prompt: "a" })
    assert.strictEqual(created.status, 202, created.text)
    yield* advance("6 seconds")
    yield* eventually(
      user.call("GET", `${image}/${created.json.task_info.id}`),
      ({ json }) => json.task_info.status === "completed"
    )
  }
  for (let n = 0; n < calls; n++) {
    const body = { model: "gpt-4o", messages: [{ role: "user", content: "hello" }] }
    const answer = yield* user.call("POST", "/v1/chat/completions", body)
    assert.strictEqual(answer.status, 200, answer.text)
  }
})

const fields = [
  "day",
  "hour",
  "user",
  "key",
  "vendor",
  "model",
  "sandbox",
  "tasks",
  "calls",
  "units",
  "amount",
  "errors",
  "p50_ms",
  "p95_ms"
]
const units = [
  "input_tokens",
  "input_cached_tokens",
  "output_tokens",
  "images",
  "videos",
  "audios",
  "seconds"
]

layer(layerGateway({ database: stores.postgres }))("usage over HTTP", (it) => {
  it.effect("is summed by day, key and model, and a member that is not grouped by is null", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 1000 })
      yield* run(user, 2, 1)
      const read = (query: string) =>
        eventually(
          user.call("GET", `${usage}?from=1970-01-01&to=1970-01-02&${query}`),
          ({ json }) =>
            json.data.reduce(
              (n: number, row: { tasks: number; calls: number }) => n + row.tasks + row.calls,
              0
            ) === 3
        )
      const whole = yield* read("group_by=day,key,vendor,model,sandbox")
      assert.strictEqual(whole.json.next_cursor, null)
      assert.strictEqual(whole.json.data.length, 2, whole.text)
      const [images, tokens] = whole.json.data
      assert.deepStrictEqual(Object.keys(images), fields)
      assert.deepStrictEqual(Object.keys(images.units), units)
      assert.match(images.key, /^key_/u)
      assert.deepInclude(images, {
        day: "1970-01-01",
        user: null,
        vendor: "alibaba",
        model: "text-to-image-max",
        sandbox: true,
        tasks: 2,
        calls: 0,
        amount: "15.00"
      })
      assert.strictEqual(images.units.images, 2)
      assert.deepInclude(tokens, { vendor: "openai", model: "gpt-4o", tasks: 0, calls: 1 })
      assert.isAbove(tokens.units.input_tokens, 0)
      assert.isAbove(tokens.units.output_tokens, 0)
      const [total] = (yield* read("")).json.data
      assert.deepInclude(total, { day: "1970-01-01", model: null, tasks: 2, calls: 1 })
      const models = yield* read("group_by=model")
      assert.deepStrictEqual(
        models.json.data.map((it: { model: string }) => it.model),
        ["gpt-4o", "text-to-image-max"]
      )
      const first = yield* user.call("GET", `${usage}?from=1970-01-01&group_by=model&limit=1`)
      assert.strictEqual(first.json.data[0].model, "gpt-4o")
      const second = yield* user.call(
        "GET",
        `${usage}?from=1970-01-01&group_by=model&limit=1&cursor=${first.json.next_cursor}`
      )
      assert.strictEqual(second.json.data[0].model, "text-to-image-max")
      assert.strictEqual(second.json.next_cursor, null)
      const top = (query: string) =>
        user.call("GET", `${usage}?from=1970-01-01&group_by=model&sort=amount&limit=1${query}`)
      const highest = yield* top("")
      assert.strictEqual(highest.json.data[0].model, "text-to-image-max")
      for (const other of ["group_by=vendor", "group_by=model&sort=amount"]) {
        const query = `from=1970-01-01&${other}&cursor=${first.json.next_cursor}`
        const refused = yield* user.call("GET", `${usage}?${query}`)
        assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001], other)
      }
      const next = yield* top(`&cursor=${highest.json.next_cursor}`)
      assert.strictEqual(next.json.data[0].model, "gpt-4o")
      assert.strictEqual(next.json.next_cursor, null)
      const one = yield* user.call("GET", `${usage}?model=gpt-4o&sandbox=true&vendor=openai`)
      assert.strictEqual(one.json.data[0].calls, 1)
      const csv = yield* user.call("GET", `${usage}?group_by=day,model&format=csv`)
      assert.match(csv.headers.get("content-type") ?? "", /^text\/csv/u)
      const lines = csv.text.split("\r\n")
      assert.strictEqual(lines[0], fields.join(",").replace("units", units.join(",")))
      const { p50_ms, p95_ms } = images
      assert.strictEqual(
        lines[2],
        `1970-01-01,,,,,text-to-image-max,,2,0,0,0,0,2,0,0,0,15.00,0,${p50_ms},${p95_ms}`
      )
      const accepted = yield* user.call("GET", `${usage}?group_by=day,model`, undefined, {
        accept: "text/csv"
      })
      assert.strictEqual(accepted.text, csv.text)
    })
  )

  it.effect("has errors and durations by hour, and the sums by day agree", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 100 })
      yield* run(user, 2, 1)
      const failed = yield* user.call("POST", image, { prompt: "[[sim:fail]]" })
      assert.strictEqual(failed.status, 202, failed.text)
      yield* advance("6 seconds")
      const read = (query: string) => user.call("GET", `${usage}?${query}`)
      const hours = yield* eventually(
        read("group_by=hour,model&from=1970-01-01&to=1970-01-02"),
        ({ json }) =>
          json.data.reduce(
            (n: number, row: { calls: number; errors: number }) => n + row.calls + row.errors,
            0
          ) === 2
      )
      const [tokens, images] = hours.json.data
      assert.deepInclude(tokens, { model: "gpt-4o", calls: 1, errors: 0 })
      assert.deepInclude(images, {
        day: null,
        hour: "1970-01-01T00:00:00.000Z",
        tasks: 2,
        errors: 1,
        amount: "15.00"
      })
      const { data: tasks } = (yield* user.call("GET", "/manage/v1/tasks?status=completed")).json
      const took = tasks
        .map((it: { created_at: string; ended_at: string }) =>
          millisAt(placeOf(Date.parse(it.ended_at) - Date.parse(it.created_at)))
        )
        .sort((one: number, other: number) => one - other)
      assert.deepStrictEqual([images.p50_ms, images.p95_ms], took)
      const { data: calls } = (yield* user.call("GET", "/manage/v1/calls")).json
      const call = Date.parse(calls[0].ended_at) - Date.parse(calls[0].created_at)
      assert.strictEqual(tokens.p95_ms, millisAt(placeOf(call)))
      const days = yield* read("group_by=day,model&from=1970-01-01&to=1970-01-02")
      assert.deepStrictEqual(
        days.json.data.map((row: object) => Object.assign(row, { day: null })),
        hours.json.data.map((row: object) => Object.assign(row, { hour: null }))
      )
      const long = (from: string) => read(`group_by=hour&from=${from}&to=1970-01-20`)
      assert.strictEqual((yield* long("1970-01-13")).status, 200)
      assert.deepStrictEqual((yield* long("1970-01-12")).json.errors, [
        {
          pointer: "#/query/from",
          detail: "Expected at most 8 days up to `to`, because they are grouped by hour"
        }
      ])
    })
  )

  it.effect("is visible to its own user, and to the operator for all users", () =>
    Effect.gen(function* () {
      const [user, other] = [yield* makeUser({ credits: 100 }), yield* makeUser({ credits: 100 })]
      yield* run(user, 1, 0)
      yield* run(other, 1, 0)
      const rows = yield* operator("GET", `${usage}?group_by=user`)
      const ids = rows.json.data.map((it: { user: string }) => it.user)
      assert.includeMembers(ids, [user.id, other.id])
      const one = yield* operator("GET", `${usage}?group_by=user&user_id=${user.id}`)
      assert.strictEqual(one.json.data.length, 1)
      assert.deepInclude(one.json.data[0], { user: user.id, amount: "7.50" })
      const own = yield* user.call("GET", `${usage}?group_by=user`)
      assert.deepStrictEqual(own.json.data, one.json.data)
      const refused = yield* user.call("GET", `${usage}?user_id=${other.id}`)
      assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004])
    })
  )

  it.effect("is refused for invalid days, groups and cursors", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      for (const query of [
        "from=yesterday",
        "from=2026-02-30",
        "from=2026-02-02&to=2026-02-01",
        "group_by=colour",
        "group_by=day,day",
        "group_by=",
        "sandbox=1",
        "sort=model",
        `sort=amount&cursor=${Buffer.from('["amount,day","x","b"]').toString("base64url")}`,
        `cursor=${Buffer.from('["group,day","0","a","b"]').toString("base64url")}`,
        "cursor=1"
      ]) {
        const answer = yield* user.call("GET", `${usage}?${query}`)
        assert.deepStrictEqual([answer.status, answer.json.code], [400, 2001], query)
      }
    })
  )

  it.effect("can be rebuilt by day, only by the operator", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 100 })
      yield* run(user, 1, 0)
      const rebuild = (body: unknown) => operator("POST", `${usage}/rebuild`, body)
      const right = yield* rebuild({ from: "1970-01-01", to: "1970-01-02" })
      assert.deepStrictEqual([right.status, right.json], [200, { corrected: 0 }])
      const one = yield* rebuild({ from: "1970-01-01", to: "1970-01-01", user_id: user.id })
      assert.deepStrictEqual(one.json, { corrected: 0 })
      for (const body of [
        { from: "2026-01-01", to: "2026-02-01" },
        { from: "2026-01-02", to: "2026-01-01" },
        { from: "2026-01-01" }
      ]) {
        assert.strictEqual((yield* rebuild(body)).json.code, 2001)
      }
      const own = yield* user.call("POST", `${usage}/rebuild`, {
        from: "1970-01-01",
        to: "1970-01-01"
      })
      assert.strictEqual(own.status, 403)
    })
  )
})
