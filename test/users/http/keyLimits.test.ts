import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import { makeKey } from "../../support/callers.ts"
import { callWith, layerGateway, makeUser } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const body = { prompt: "[[sim:hang]]" }
const nobody = `${path}/00000000-0000-7000-8000-000000000000`

const rateOf = (headers: Headers) =>
  ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after"].map((name) =>
    headers.get(name)
  )

layer(layerGateway({ database: stores.postgres, env: { RATE_LIMIT_PER_MINUTE: "5" } }))(
  "RATE_LIMIT_PER_MINUTE",
  (it) => {
    it.effect(
      "the sixth request of a minute is 429 code 1201, with Retry-After and RateLimit-*",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const created = yield* user.call("POST", path, body)
          assert.strictEqual(created.status, 202)
          assert.deepStrictEqual(rateOf(created.headers), ["5", "4", "12", null])
          const task = `${path}/${created.json.task_info.id}`
          const got = yield* user.call("GET", task)
          assert.deepStrictEqual(rateOf(got.headers).slice(0, 3), ["5", "3", "24"])
          const wrong = yield* user.call("POST", path, {})
          assert.strictEqual(wrong.json.code, 2001)
          assert.deepStrictEqual(rateOf(wrong.headers), ["5", "2", "36", null])
          const cancelled = yield* user.call("DELETE", task)
          assert.deepStrictEqual(rateOf(cancelled.headers), ["5", "1", "48", null])
          const missing = yield* user.call("GET", nobody)
          assert.strictEqual(missing.status, 404)
          assert.deepStrictEqual(rateOf(missing.headers), ["5", "0", "60", null])
          const refused = yield* user.call("GET", task)
          assert.strictEqual(refused.status, 429)
          assert.strictEqual(refused.json.code, 1201)
          assert.deepStrictEqual(rateOf(refused.headers), ["5", "0", "12", "12"])
        })
    )

    it.effect("refills evenly: by one request after Retry-After, by five after a minute", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const ask = Effect.map(user.call("GET", nobody), ({ status }) => status)
        const burst = (count: number) => Effect.all(Array.from({ length: count }, () => ask))
        assert.deepStrictEqual(yield* burst(6), [404, 404, 404, 404, 404, 429])
        yield* TestClock.adjust("11999 millis")
        assert.strictEqual(yield* ask, 429)
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(yield* burst(2), [404, 429])
        yield* TestClock.adjust("60 seconds")
        assert.deepStrictEqual(yield* burst(6), [404, 404, 404, 404, 404, 429])
      })
    )

    it.effect(
      "is exact for 50 requests at once, counts by key, and leaves out the management API",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const answers = yield* Effect.all(
            Array.from({ length: 50 }, () => user.call("GET", nobody)),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(answers.filter(({ status }) => status === 404).length, 5)
          assert.strictEqual(answers.filter(({ status }) => status === 429).length, 45)
          const { key } = yield* makeKey(user.id, ["inference"])
          assert.strictEqual((yield* callWith(key)("GET", nobody)).status, 404)
          const managed = yield* user.call("GET", "/manage/v1/wallet")
          assert.strictEqual(managed.status, 200)
          assert.deepStrictEqual(rateOf(managed.headers), [null, null, null, null])
        })
    )
  }
)

layer(layerGateway(), { timeout: "60 seconds" })("API keys", (it) => {
  it.effect("limits are off by default: no RateLimit headers", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const answer = yield* user.call("GET", nobody)
      assert.deepStrictEqual(rateOf(answer.headers), [null, null, null, null])
    })
  )

  it.effect("a scope opens its own part of the service: otherwise 403 code 1004", () =>
    Effect.gen(function* () {
      const manager = yield* makeUser({ scopes: ["manage"] })
      assert.strictEqual((yield* manager.call("GET", nobody)).json.code, 1004)
      assert.strictEqual((yield* manager.call("POST", path, body)).status, 403)
      assert.strictEqual((yield* manager.call("GET", "/manage/v1/wallet")).status, 200)
      const user = yield* makeUser({ scopes: ["inference"] })
      assert.strictEqual((yield* user.call("GET", "/manage/v1/wallet")).json.code, 1004)
      assert.strictEqual((yield* user.call("GET", nobody)).json.code, 2005)
    })
  )

  it.effect("a key expires at its time, to the millisecond: 401 code 1003", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const now = yield* DateTime.now
      const { key } = yield* (yield* ApiKeys).create({
        userId: user.id,
        name: "short",
        scopes: ["inference", "manage"],
        expiresAt: Option.some(DateTime.add(now, { minutes: 1 }))
      })
      const call = callWith(key)
      yield* TestClock.adjust("59999 millis")
      assert.strictEqual((yield* call("GET", nobody)).json.code, 2005)
      yield* TestClock.adjust("1 millis")
      for (const place of [nobody, "/manage/v1/wallet"]) {
        const answer = yield* call("GET", place)
        assert.strictEqual(answer.status, 401)
        assert.strictEqual(answer.json.code, 1003)
        assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer/u)
      }
    })
  )

  it.effect("the time of last use is written at most once a minute", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const lastUsed = Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const rows = yield* sql`SELECT last_used_at, xmin::text AS written
          FROM api_keys WHERE user_id = ${user.id}`
        return rows[0] as { lastUsedAt: Date | null; written: string }
      })
      assert.isNull((yield* lastUsed).lastUsedAt)
      yield* Effect.all(
        Array.from({ length: 20 }, () => user.call("GET", nobody)),
        { concurrency: "unbounded" }
      )
      const first = yield* lastUsed
      assert.isNotNull(first.lastUsedAt)
      yield* TestClock.adjust("60 seconds")
      yield* user.call("GET", nobody)
      assert.deepStrictEqual(yield* lastUsed, first)
      yield* TestClock.adjust("1 millis")
      yield* user.call("GET", nobody)
      const second = yield* lastUsed
      assert.strictEqual(second.lastUsedAt!.getTime() - first.lastUsedAt!.getTime(), 60_001)
    })
  )

  it.effect("a mistyped key is recognized as such, without a query", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const sql = yield* SqlClient.SqlClient
      const last = user.key.at(-1) === "a" ? "b" : "a"
      const typed = [`${user.key.slice(0, -1)}${last}`, user.key.slice(0, -1), "sk-1", "x"]
      // Without the table any lookup would be a defect with status 500
      yield* sql`ALTER TABLE api_keys RENAME TO api_keys_away`
      for (const key of typed) {
        for (const place of [nobody, "/manage/v1/wallet"]) {
          const answer = yield* callWith(key)("GET", place)
          assert.strictEqual(answer.status, 401)
          assert.strictEqual(answer.json.code, 1002)
          assert.match(answer.json.detail, /malformed/u)
        }
      }
      yield* sql`ALTER TABLE api_keys_away RENAME TO api_keys`
      yield* sql`DELETE FROM api_keys WHERE user_id = ${user.id}`
      const unknown = yield* user.call("GET", nobody)
      assert.strictEqual(unknown.json.code, 1002)
      assert.match(unknown.json.detail, /unknown/u)
    })
  )
})
