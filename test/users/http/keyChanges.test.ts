import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { makeKey } from "../../support/callers.ts"
import {
  callWith,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** `PATCH /manage/v1/api-keys/{id}`: names, spend limits, models, rates, tasks and expiry of one key. */

const keys = "/manage/v1/api-keys"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const chat = "/v1/chat/completions"
/** Costs 7.50 credits and does not end by itself. */
const body = { prompt: "[[sim:hang]]" }
const hello = { model: "gpt-4o", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] }

/** A user with a key of scope `manage`, and a key to limit. */
const makeKeys = Effect.gen(function* () {
  const owner = yield* makeUser()
  const { key, row } = yield* makeKey(owner.id)
  const at = `${keys}/${row.id}`
  return {
    owner,
    at,
    call: callWith(key),
    change: (change: unknown) => owner.call("PATCH", at, change),
    shown: Effect.map(owner.call("GET", at), ({ json }) => json)
  }
})

/** As `Retry-After` states it. */
const secondsUntil = (day: string) =>
  Effect.map(DateTime.now, (now) =>
    String(Math.ceil((Date.parse(day) - DateTime.toEpochMillis(now)) / 1000))
  )

/** A separate key, and a POST whose body continues after `then`, when its key has been checked. */
const sendSlowly = Effect.fnUntraced(function* (
  path: string,
  content: unknown,
  then: (
    at: string,
    call: ReturnType<typeof callWith>
  ) => Effect.Effect<{ readonly status: number }, never, GatewayHttp>
) {
  const http = yield* GatewayHttp
  const owner = yield* makeUser()
  const { key, row } = yield* makeKey(owner.id, ["inference"])
  const at = `${keys}/${row.id}`
  yield* owner.call("PATCH", at, { allowed_models: ["gpt-4o", "text-to-image-max"] })
  const text = new TextEncoder().encode(JSON.stringify(content))
  let go = () => {}
  const stream = new ReadableStream<Uint8Array>({
    start: (to) => {
      to.enqueue(text.subarray(0, 5))
      go = () => {
        to.enqueue(text.subarray(5))
        to.close()
      }
    }
  })
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const sending = yield* Effect.forkChild(
    http.fetch(path, { method: "POST", headers, body: stream, duplex: "half" } as RequestInit)
  )
  yield* eventually(owner.call("GET", at), ({ json }) => json.last_used_at !== null)
  const changed = yield* then(at, owner.call)
  assert.isBelow(changed.status, 300)
  go()
  const response = yield* Fiber.join(sending)
  const { code } = (yield* Effect.promise(() => response.json())) as { code: number }
  return [response.status, code]
})

layer(layerGateway({ database: stores.postgres }))("a change of an API key", (it) => {
  it.effect("may be part of the create, so that the key has its limits from the beginning", () =>
    Effect.gen(function* () {
      const owner = yield* makeUser()
      const limits = {
        spend_limit: "7.50",
        reset: "monthly",
        allowed_models: ["text-to-image-max"],
        rate_limit_per_minute: 7,
        concurrent_tasks: 3
      }
      for (const [call, path] of [
        [owner.call, keys],
        [operator, `/manage/v1/users/${owner.id}/api-keys`]
      ] as const) {
        const made = yield* call("POST", path, { name: "limited", ...limits })
        assert.strictEqual(made.status, 201, path)
        const shown = yield* owner.call("GET", `${keys}/${made.json.id}`)
        for (const [name, value] of Object.entries(limits)) {
          assert.deepStrictEqual(shown.json[name], value, name)
        }
        const first = yield* callWith(made.json.key)("POST", image, body)
        assert.strictEqual(first.status, 202)
        const second = yield* callWith(made.json.key)("POST", image, body)
        assert.strictEqual(second.json.code, 1102)
      }
      const free = { spend_limit: null, allowed_models: null, concurrent_tasks: null }
      const unlimited = yield* owner.call("POST", keys, { name: "unlimited", ...free })
      const shown = yield* owner.call("GET", `${keys}/${unlimited.json.id}`)
      assert.isNull(shown.json.spend_limit)
      assert.isNull(shown.json.reset)
    })
  )

  it.effect("is refused in a create for the same limits as in a change, and no key is made", () =>
    Effect.gen(function* () {
      const owner = yield* makeUser()
      const count = Effect.map(owner.call("GET", keys), ({ json }) => json.data.length)
      const before = yield* count
      const wrong = { spend_limit: "-1", rate_limit_per_minute: 0, allowed_models: [] }
      const refused = yield* owner.call("POST", keys, { name: "wrong", ...wrong })
      assert.sameMembers(
        refused.json.errors.map(({ pointer }: { pointer: string }) => pointer),
        Object.keys(wrong).map((name) => `#/${name}`)
      )
      const expired = { reset: "daily", expires_at: "1970-01-01T00:00:00Z" }
      const alone = yield* owner.call("POST", keys, { name: "alone", ...expired })
      assert.strictEqual(alone.json.code, 2001)
      assert.sameMembers(
        alone.json.errors.map(({ pointer }: { pointer: string }) => pointer),
        ["#/reset", "#/expires_at"]
      )
      assert.strictEqual(yield* count, before)
    })
  )

  it.effect("applies to requests whose bodies arrive after it", () =>
    Effect.gen(function* () {
      for (const [path, content] of [
        [image, body],
        [chat, hello]
      ] as const) {
        const narrowed = yield* sendSlowly(path, content, (at, call) =>
          call("PATCH", at, { allowed_models: ["o3"] })
        )
        assert.deepStrictEqual(narrowed, [403, 1004], path)
        const revoked = yield* sendSlowly(path, content, (at, call) => call("DELETE", at))
        assert.deepStrictEqual(revoked, [401, 1003], path)
      }
    })
  )

  it.effect(
    "returns the key as GET and the list show it; absent members stay, and null removes",
    () =>
      Effect.gen(function* () {
        const { at, change, owner, shown } = yield* makeKeys
        const before = yield* shown
        assert.deepInclude(before, {
          name: "key",
          spend_limit: null,
          reset: null,
          spent: null,
          held: null,
          remaining: null,
          resets_at: null,
          allowed_models: null,
          rate_limit_per_minute: null,
          concurrent_tasks: null,
          expires_at: null
        })
        const expires_at = "2099-01-01T00:00:00.000Z"
        const changed = yield* change({
          name: "console",
          spend_limit: "25",
          reset: "monthly",
          allowed_models: ["gpt-4o"],
          rate_limit_per_minute: 60,
          concurrent_tasks: 2,
          expires_at
        })
        assert.strictEqual(changed.status, 200, changed.text)
        const expected = {
          ...before,
          name: "console",
          expires_at,
          spend_limit: "25.00",
          reset: "monthly",
          spent: "0.00",
          held: "0.00",
          remaining: "25.00",
          resets_at: "1970-02-01T00:00:00.000Z",
          allowed_models: ["gpt-4o"],
          rate_limit_per_minute: 60,
          concurrent_tasks: 2
        }
        assert.deepStrictEqual(changed.json, expected)
        assert.deepStrictEqual(yield* shown, expected)
        const { json } = yield* owner.call("GET", keys)
        assert.deepStrictEqual(
          json.data.find(({ id }: { id: string }) => at.endsWith(id)),
          expected
        )
        const renamed = yield* change({ name: "key" })
        assert.deepStrictEqual(renamed.json, { ...expected, name: "key" })
        const removed = yield* change({
          spend_limit: null,
          allowed_models: null,
          rate_limit_per_minute: null,
          concurrent_tasks: null,
          expires_at: null
        })
        assert.deepStrictEqual(removed.json, before)
      })
  )

  it.effect(
    "is refused if it is malformed, for an unknown key, and for the requesting key itself",
    () =>
      Effect.gen(function* () {
        const { at, call, change, shown } = yield* makeKeys
        const before = yield* shown
        const faulty = {
          "#/name": { name: "" },
          "#/reset": { spend_limit: "1", reset: "hourly" },
          "#/spend_limit": { spend_limit: "-1", reset: "daily" },
          "#/allowed_models": { allowed_models: [] },
          "#/rate_limit_per_minute": { rate_limit_per_minute: 0 },
          "#/concurrent_tasks": { concurrent_tasks: 1.5 },
          "#/expires_at": { expires_at: "1970-01-01T00:00:00.000Z" },
          "#/scopes": { scopes: ["manage"] }
        }
        for (const [pointer, payload] of Object.entries(faulty)) {
          const { json } = yield* change(payload)
          assert.deepStrictEqual([json.code, json.errors[0].pointer], [2001, pointer])
        }
        for (const [payload, pointers] of [
          [{ spend_limit: { amount: "1" }, reset: null }, ["#/spend_limit", "#/reset"]],
          [{ reset: "daily" }, ["#/reset"]],
          [{ spend_limit: null, reset: "daily" }, ["#/reset"]],
          [{ reset: "daily", expires_at: "1970-01-01T00:00:00.000Z" }, ["#/expires_at", "#/reset"]]
        ] as const) {
          const { json } = yield* change(payload)
          const listed = json.errors.map(({ pointer }: { pointer: string }) => pointer)
          assert.deepStrictEqual([json.code, listed], [2001, pointers])
        }
        const own = yield* call("PATCH", at, { spend_limit: null })
        assert.deepStrictEqual([own.status, own.json.code], [403, 1004])
        assert.strictEqual((yield* call("GET", at)).status, 200)
        const other = yield* makeUser()
        for (const method of ["GET", "PATCH"]) {
          const answer = yield* other.call(method, at, method === "GET" ? undefined : { name: "x" })
          assert.deepStrictEqual([answer.status, answer.json.code], [404, 2005])
        }
        const after = yield* shown
        assert.deepStrictEqual({ ...after, last_used_at: null }, before)
        const byOperator = yield* operator("PATCH", at, { name: "by the operator" })
        assert.deepStrictEqual(byOperator.json, { ...after, name: "by the operator" })
      })
  )

  it.effect(
    "changes spend_limit without its reset, and reset without its amount; a new limit never resets",
    () =>
      Effect.gen(function* () {
        const { at, call, change, owner } = yield* makeKeys
        const changed = (payload: unknown) => Effect.map(change(payload), ({ json }) => json)
        const first = yield* changed({ spend_limit: "20" })
        assert.deepInclude(first, { spend_limit: "20.00", reset: "never", resets_at: null })
        assert.strictEqual((yield* call("POST", image, body)).status, 202)
        const lower = yield* changed({ spend_limit: "10" })
        const counted = { held: "7.50", remaining: "2.50" }
        assert.deepInclude(lower, { spend_limit: "10.00", reset: "never", ...counted })
        assert.deepInclude(yield* changed({ reset: "never" }), counted)
        // Another period starts at zero
        const daily = yield* changed({ reset: "daily" })
        const reset = { reset: "daily", held: "0.00", resets_at: "1970-01-02T00:00:00.000Z" }
        assert.deepInclude(daily, { spend_limit: "10.00", ...reset })
        assert.deepInclude(yield* changed({ spend_limit: "12" }), {
          spend_limit: "12.00",
          ...reset
        })
        yield* changed({ spend_limit: null })
        const again = yield* changed({ spend_limit: "12" })
        assert.deepInclude(again, { spend_limit: "12.00", reset: "never" })

        // Two keys of the user, or two people, change one half each
        const halves = [{ spend_limit: "30.00" }, { reset: "monthly" }, { name: "both" }]
        for (const some of [halves, halves.toReversed()]) {
          yield* change({ name: "half", spend_limit: "1", reset: "never" })
          const answers = yield* Effect.forEach(some, (half) => owner.call("PATCH", at, half), {
            concurrency: "unbounded"
          })
          for (const answer of answers) assert.strictEqual(answer.status, 200, answer.text)
          assert.deepInclude((yield* owner.call("GET", at)).json, Object.assign({}, ...halves))
        }
      })
  )

  it.effect(
    "refuses a reset whose limit was removed concurrently, unless the reset came first",
    () =>
      Effect.gen(function* () {
        const { change, shown } = yield* makeKeys
        for (let n = 0; n < 10; n += 1) {
          yield* change({ spend_limit: "1", reset: "never" })
          const removal = { spend_limit: null }
          const both = [removal, { reset: "daily", name: `n${n}` }]
          const [removed, moved] = yield* Effect.forEach(both, change, {
            concurrency: "unbounded"
          })
          assert.strictEqual(removed!.status, 200)
          const after = yield* shown
          assert.deepInclude(after, { spend_limit: null, reset: null })
          const isDone = after.name === `n${n}`
          assert.deepStrictEqual(
            [moved!.status, moved!.json.errors?.[0].pointer],
            isDone ? [200, undefined] : [400, "#/reset"]
          )
        }
      })
  )

  it.effect("spend_limit: 402 code 1102 with what remains, and Retry-After when it resets", () =>
    Effect.gen(function* () {
      const { call, change, owner, shown } = yield* makeKeys
      yield* change({ spend_limit: "20.00", reset: "daily" })
      const first = yield* call("POST", image, body)
      assert.strictEqual(first.headers.get("x-service-budget-remaining"), "12.50")
      const second = yield* call("POST", image, body)
      assert.strictEqual(second.headers.get("x-service-budget-remaining"), "5.00")
      const refused = yield* call("POST", image, body)
      assert.deepStrictEqual([refused.status, refused.json.code], [402, 1102])
      assert.strictEqual(refused.json.remaining, "5.00")
      assert.include(refused.json.detail, "5.00 more credits")
      assert.strictEqual(refused.headers.get("retry-after"), yield* secondsUntil("1970-01-02"))
      // Another key of the same user has the whole wallet
      assert.strictEqual((yield* owner.call("POST", image, body)).status, 202)
      const cancelled = `${image}/${first.json.task_info.id}`
      assert.strictEqual((yield* call("DELETE", cancelled)).status, 200)
      assert.deepInclude(yield* shown, {
        spent: "0.00",
        held: "7.50",
        remaining: "12.50",
        resets_at: "1970-01-02T00:00:00.000Z"
      })
      assert.strictEqual((yield* call("POST", image, body)).status, 202)
      yield* change({ spend_limit: "5.00", reset: "daily" })
      assert.deepInclude(yield* shown, { held: "15.00", remaining: "0.00" })
      yield* change({ spend_limit: "7.40", reset: "never" })
      const never = yield* call("POST", image, body)
      assert.deepStrictEqual([never.json.code, never.json.remaining], [1102, "7.40"])
      assert.isNull(never.headers.get("retry-after"))
    })
  )

  it.effect("spend_limit: calls count at what they cost; a repeated create is replayed", () =>
    Effect.gen(function* () {
      const { call, change, shown } = yield* makeKeys
      yield* change({ spend_limit: "8", reset: "weekly" })
      const key = { "idempotency-key": "k" }
      const made = yield* call("POST", image, body, key)
      assert.strictEqual(made.headers.get("x-service-budget-remaining"), "0.50")
      const answered = yield* call("POST", chat, hello)
      assert.strictEqual(answered.status, 200, answered.text)
      const cost = Number(answered.headers.get("x-service-cost"))
      assert.isBelow(Number(answered.headers.get("x-service-budget-remaining")), 0.5)
      const dear = yield* call("POST", chat, { ...hello, max_tokens: 10_000 })
      assert.deepStrictEqual([dear.status, dear.json.code], [402, 1102])
      assert.strictEqual(dear.json.error.type, "insufficient_quota")
      assert.strictEqual(dear.headers.get("retry-after"), yield* secondsUntil("1970-01-05"))
      const again = yield* call("POST", image, body, key)
      assert.deepStrictEqual([again.status, again.text], [202, made.text])
      const sql = yield* SqlClient.SqlClient
      // The settlement is written shortly after the response
      yield* TestClock.adjust("100 millis")
      for (let n = 0; n < 200; n += 1) {
        if ((yield* sql`SELECT FROM holds WHERE kind = 'call'`).length === 0) break
        yield* TestClock.adjust("10 millis")
      }
      const { spent } = yield* shown
      assert.closeTo(Number(spent), cost, 0.011)
    })
  )

  it.effect("allowed_models: 403 code 1004 for another model, of tasks and of calls", () =>
    Effect.gen(function* () {
      const { call, change, owner } = yield* makeKeys
      assert.strictEqual((yield* call("POST", chat, hello)).status, 200)
      const allowed_models = ["gpt-4o-mini", "claude-haiku-4-5", "text-to-image-max"]
      yield* change({ allowed_models })
      for (const answer of [
        yield* call("POST", chat, hello),
        yield* call("POST", "/vendors/google/v1beta/models/gemini-2.5-flash:generateContent", {
          contents: []
        }),
        yield* call("GET", "/vendors/openai/v1/models/gpt-4o"),
        yield* call("POST", "/vendors/alibaba/v1/image-edit/edit", {}),
        yield* call("POST", "/vendors/alibaba/v1/image-edit/edit?dry_run=true", {}),
        yield* call("POST", "/v1/messages", {
          model: "claude-haiku-4-5",
          max_tokens: 5,
          messages: [],
          fallbacks: [{ model: "claude-opus-5" }]
        })
      ]) {
        assert.deepStrictEqual([answer.status, answer.json.code], [403, 1004], answer.text)
      }
      for (const model of ["gpt-4o-mini", "gpt-4o-mini-2024-07-18"]) {
        const answer = yield* call("POST", chat, { ...hello, model })
        assert.strictEqual(answer.status, 200, answer.text)
      }
      assert.strictEqual((yield* call("POST", image, body)).status, 202)
      assert.strictEqual((yield* owner.call("POST", chat, hello)).status, 200)
      yield* change({ allowed_models: ["gpt-4o"] })
      assert.strictEqual((yield* call("POST", chat, hello)).status, 200)
      assert.strictEqual((yield* call("POST", image, body)).status, 403)
      yield* change({ allowed_models: null })
      assert.strictEqual((yield* call("POST", image, body)).status, 202)
    })
  )

  it.effect("rate_limit_per_minute: 429 code 1201, for tasks and for calls together", () =>
    Effect.gen(function* () {
      const { call, change, owner } = yield* makeKeys
      // Cached, without a limit
      assert.strictEqual((yield* call("POST", chat, hello)).status, 200)
      yield* change({ rate_limit_per_minute: 3 })
      const answers = [
        yield* call("POST", chat, hello),
        yield* call("POST", image, body),
        yield* call("POST", chat, hello)
      ]
      assert.deepStrictEqual(
        answers.map(({ headers }) => headers.get("ratelimit-remaining")),
        ["2", "1", "0"]
      )
      for (const path of [chat, image]) {
        const refused = yield* call("POST", path, path === chat ? hello : body)
        assert.deepStrictEqual([refused.status, refused.json.code], [429, 1201])
        assert.strictEqual(refused.headers.get("retry-after"), "20")
      }
      assert.strictEqual((yield* owner.call("POST", chat, hello)).status, 200)
      yield* change({ rate_limit_per_minute: null })
      assert.strictEqual((yield* call("POST", chat, hello)).status, 200)
    })
  )

  it.effect("concurrent_tasks: exact when 20 creates come at once", () =>
    Effect.gen(function* () {
      const { call, change } = yield* makeKeys
      yield* change({ concurrent_tasks: 2 })
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, () => call("POST", image, body)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(answers.filter(({ status }) => status === 202).length, 2)
      assert.strictEqual(answers.filter(({ json }) => json.code === 1202).length, 18)
      yield* change({ concurrent_tasks: null })
      assert.strictEqual((yield* call("POST", image, body)).status, 202)
    })
  )

  it.effect("concurrent_tasks: a repeated create gets its response whatever the limit", () =>
    Effect.gen(function* () {
      const { call, change } = yield* makeKeys
      yield* change({ concurrent_tasks: 2 })
      const first = yield* call("POST", image, body, { "idempotency-key": "k" })
      assert.strictEqual((yield* call("POST", image, body)).status, 202)
      const again = yield* call("POST", image, body, { "idempotency-key": "k" })
      assert.strictEqual(again.status, 202)
      assert.strictEqual(again.text, first.text)
      const fresh = yield* call("POST", image, body, { "idempotency-key": "new" })
      assert.strictEqual(fresh.json.code, 1202)
      assert.strictEqual(fresh.headers.get("retry-after"), "2")
    })
  )

  it.effect("expires_at: the key is refused from then on, even if it is cached", () =>
    Effect.gen(function* () {
      const { call, change } = yield* makeKeys
      assert.strictEqual((yield* call("POST", chat, hello)).status, 200)
      const soon = DateTime.add(yield* DateTime.now, { minutes: 1 })
      yield* change({ expires_at: DateTime.formatIso(soon) })
      assert.strictEqual((yield* call("POST", chat, hello)).status, 200)
      yield* TestClock.adjust("1 minute")
      for (const [path, payload] of [
        [chat, hello],
        [image, body]
      ] as const) {
        const refused = yield* call("POST", path, payload)
        assert.deepStrictEqual([refused.status, refused.json.code], [401, 1003])
      }
      yield* change({ expires_at: null })
      assert.strictEqual((yield* call("POST", chat, hello)).status, 200)
    })
  )
})

describe("a key with its own limit beside the configured ones", () => {
  const env = { RATE_LIMIT_PER_MINUTE: "4", CONCURRENT_TASKS_PER_KEY: "2" }
  layer(layerGateway({ database: stores.postgres, env }))((it) => {
    it.effect("has the lower of the two", () =>
      Effect.gen(function* () {
        const { call, change } = yield* makeKeys
        yield* change({ rate_limit_per_minute: 100, concurrent_tasks: 100 })
        const first = yield* call("POST", image, body)
        assert.strictEqual(first.headers.get("ratelimit-limit"), "4")
        yield* call("POST", image, body)
        assert.strictEqual((yield* call("POST", image, body)).json.code, 1202)
        yield* change({ rate_limit_per_minute: 1, concurrent_tasks: 1 })
        yield* TestClock.adjust("2 minutes")
        const refused = yield* call("POST", image, body)
        assert.strictEqual(refused.headers.get("ratelimit-limit"), "1")
        assert.strictEqual(refused.json.code, 1202)
        assert.strictEqual((yield* call("POST", image, body)).json.code, 1201)
      })
    )
  })
})
