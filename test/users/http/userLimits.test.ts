import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { makeEndpointId } from "../../../src/domain/Ids.ts"
import { RequestQuotas } from "../../../src/users/RequestQuotas.ts"
import { makeKey } from "../../support/callers.ts"
import { callWith, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const body = { prompt: "[[sim:hang]]" }
const keys = "/manage/v1/api-keys"
const nobody = `${path}/00000000-0000-7000-8000-000000000000`

const rateOf = (headers: Headers) =>
  ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after"].map((name) =>
    headers.get(name)
  )

type User = Effect.Success<ReturnType<typeof makeUser>>

const anotherKey = Effect.fnUntraced(function* (user: User) {
  const { key } = yield* makeKey(user.id)
  return callWith(key)
})

describe("USER_RATE_LIMIT_PER_MINUTE", () => {
  layer(layerGateway({ database: stores.postgres, env: { USER_RATE_LIMIT_PER_MINUTE: "6" } }))(
    (it) => {
      it.effect("limits the requests of all keys of a user together: 429 code 1201", () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const second = yield* anotherKey(user)
          const other = yield* makeUser()
          const calls = [user.call, second, user.call, second, user.call, second]
          for (const [n, call] of calls.entries()) {
            const answer = yield* call("GET", nobody)
            assert.strictEqual(answer.status, 404)
            assert.deepStrictEqual(rateOf(answer.headers).slice(0, 2), ["6", String(5 - n)])
          }
          for (const call of [user.call, second, yield* anotherKey(user)]) {
            const refused = yield* call("GET", nobody)
            assert.deepStrictEqual([refused.status, refused.json.code], [429, 1201])
            assert.deepStrictEqual(rateOf(refused.headers), ["6", "0", "10", "10"])
            assert.match(refused.json.detail, /user/u)
          }
          assert.strictEqual((yield* other.call("GET", nobody)).status, 404)
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual((yield* second("GET", nobody)).status, 404)
          assert.strictEqual((yield* user.call("GET", nobody)).status, 429)
        })
      )

      it.effect("counts no request that is refused because of its key", () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const make = Effect.fnUntraced(function* (fields?: object) {
            const { json } = yield* user.call("POST", keys, { name: "key", ...fields })
            return { at: `${keys}/${json.id}`, call: callWith(json.key) }
          })
          const soon = DateTime.add(yield* DateTime.now, { seconds: 1 })
          const expiring = yield* make({ expires_at: DateTime.formatIso(soon) })
          const revoked = yield* make()
          const rotated = yield* make()
          const managing = yield* make({ scopes: ["manage"] })
          yield* user.call("DELETE", revoked.at)
          yield* user.call("POST", `${rotated.at}/rotate`)
          yield* TestClock.adjust("1 second")
          for (const { call } of [expiring, revoked, rotated]) {
            assert.strictEqual((yield* call("GET", nobody)).json.code, 1003)
          }
          assert.strictEqual((yield* managing.call("GET", nobody)).json.code, 1004)
          const disable = (disabled: boolean) =>
            operator("PATCH", `/manage/v1/users/${user.id}`, { disabled })
          yield* disable(true)
          assert.strictEqual((yield* user.call("GET", nobody)).json.code, 1003)
          yield* disable(false)
          assert.deepStrictEqual(rateOf((yield* user.call("GET", nobody)).headers).slice(0, 2), [
            "6",
            "5"
          ])
        })
      )

      it.effect("counts calls of the passthrough too, and is exact when 50 come at once", () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const second = yield* anotherKey(user)
          const answers = yield* Effect.all(
            Array.from({ length: 50 }, (_, n) =>
              (n % 2 === 0 ? user.call : second)("GET", "/v1/models")
            ),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(answers.filter(({ status }) => status === 200).length, 6)
          assert.strictEqual(answers.filter(({ json }) => json?.code === 1201).length, 44)
        })
      )
    }
  )

  const both = { RATE_LIMIT_PER_MINUTE: "3", USER_RATE_LIMIT_PER_MINUTE: "4" }
  layer(layerGateway({ database: stores.postgres, env: both }))((it) => {
    it.effect("applies beside the key's limit: the nearer one is in the headers and refuses", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const second = yield* anotherKey(user)
        const statusOf = (call: User["call"]) =>
          Effect.map(call("GET", nobody), ({ headers, status }) => [
            status,
            headers.get("ratelimit-limit")
          ])
        assert.deepStrictEqual(yield* statusOf(user.call), [404, "3"])
        assert.deepStrictEqual(yield* statusOf(user.call), [404, "3"])
        assert.deepStrictEqual(yield* statusOf(user.call), [404, "3"])
        // A refusal because of the key does not count against the user
        assert.deepStrictEqual(yield* statusOf(user.call), [429, "3"])
        assert.deepStrictEqual(yield* statusOf(second), [404, "4"])
        assert.deepStrictEqual(yield* statusOf(second), [429, "4"])
      })
    )

    it.effect("is not raised by the limit of a key, which may only be lower", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { key, row } = yield* makeKey(user.id)
        for (const [own, applied] of [
          [10, "3"],
          [2, "2"],
          [null, "3"]
        ] as const) {
          yield* user.call("PATCH", `${keys}/${row.id}`, { rate_limit_per_minute: own })
          const answer = yield* callWith(key)("GET", nobody)
          assert.strictEqual(answer.headers.get("ratelimit-limit"), applied)
        }
      })
    )
  })
})

layer(layerGateway({ database: stores.postgres, env: { CONCURRENT_TASKS_PER_USER: "3" } }))(
  "CONCURRENT_TASKS_PER_USER",
  (it) => {
    it.effect("limits the unfinished tasks of all keys of a user together: 429 code 1202", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const second = yield* anotherKey(user)
        const other = yield* makeUser()
        const answers = yield* Effect.all(
          Array.from({ length: 40 }, (_, n) =>
            (n % 2 === 0 ? user.call : second)("POST", path, body)
          ),
          { concurrency: "unbounded" }
        )
        const taken = answers.filter(({ status }) => status === 202)
        assert.strictEqual(taken.length, 3)
        for (const { headers, json, status } of answers) {
          if (status === 202) continue
          assert.deepStrictEqual([status, json.code], [429, 1202])
          assert.strictEqual(headers.get("retry-after"), "2")
          assert.match(json.detail, /user/u)
        }
        assert.strictEqual((yield* other.call("POST", path, body)).status, 202)
        yield* second("DELETE", `${path}/${taken[0]!.json.task_info.id}`)
        assert.strictEqual((yield* user.call("POST", path, body)).status, 202)
        assert.strictEqual((yield* second("POST", path, body)).json.code, 1202)
      })
    )
  }
)

layer(layerGateway({ database: stores.postgres, env: { MANAGE_RATE_LIMIT_PER_MINUTE: "6" } }))(
  "MANAGE_RATE_LIMIT_PER_MINUTE",
  (it) => {
    it.effect("limits a user's management requests: 429 code 1201 with Retry-After", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const second = yield* anotherKey(user)
        const other = yield* makeUser()
        const ask = (call: User["call"]) => call("GET", "/manage/v1/wallet")
        for (const call of [user.call, second, user.call, second, user.call, second]) {
          assert.strictEqual((yield* ask(call)).status, 200)
        }
        for (const call of [user.call, second]) {
          const refused = yield* ask(call)
          assert.deepStrictEqual([refused.status, refused.json.code], [429, 1201])
          assert.strictEqual(refused.headers.get("retry-after"), "10")
        }
        assert.strictEqual((yield* ask(other.call)).status, 200)
        // Neither inference nor the operator counts
        assert.strictEqual((yield* user.call("GET", nobody)).status, 404)
        for (let n = 0; n < 8; n += 1) {
          assert.strictEqual((yield* operator("GET", "/manage/v1/users")).status, 200)
        }
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* ask(user.call)).status, 200)
        assert.strictEqual((yield* ask(user.call)).status, 429)
      })
    )
  }
)

layer(layerGateway())("test events", (it) => {
  it.effect("are limited to 100 a day and endpoint: then 429 code 1201", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const make = Effect.map(
        user.call("POST", "/manage/v1/webhook-endpoints", {
          url: "https://127.0.0.1/hook",
          events: ["task.succeeded"]
        }),
        ({ json }) => `/manage/v1/webhook-endpoints/${json.id}/test`
      )
      const first = yield* make
      for (let n = 0; n < 100; n += 1) {
        assert.strictEqual((yield* user.call("POST", first)).status, 202)
      }
      const refused = yield* user.call("POST", first)
      assert.deepStrictEqual([refused.status, refused.json.code], [429, 1201])
      assert.strictEqual(refused.headers.get("retry-after"), "864")
      assert.strictEqual((yield* user.call("POST", yield* make)).status, 202)
      yield* TestClock.adjust("864 seconds")
      assert.strictEqual((yield* user.call("POST", first)).status, 202)
      assert.strictEqual((yield* user.call("POST", first)).status, 429)
    })
  )

  it.effect("are limited to 500 a day and user, however often endpoints are recreated", () =>
    Effect.gen(function* () {
      const { id } = yield* makeUser()
      const other = yield* makeUser()
      const quotas = yield* RequestQuotas
      const now = DateTime.toEpochMillis(yield* DateTime.now)
      for (let n = 0; n < 500; n += 1) yield* quotas.takeTestEvent(id, makeEndpointId(now))
      const refused = yield* Effect.flip(quotas.takeTestEvent(id, makeEndpointId(now)))
      assert.strictEqual(refused._tag === "Problem" ? refused.code : undefined, 1201)
      yield* quotas.takeTestEvent(other.id, makeEndpointId(now))
    })
  )
})

const manage = "/manage/v1"
const chat = "/v1/chat/completions"
const hello = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }

/** A user with two keys and limits set by the operator. */
const makeLimited = Effect.gen(function* () {
  const user = yield* makeUser()
  const at = `${manage}/users/${user.id}`
  return {
    ...user,
    at,
    second: yield* anotherKey(user),
    set: Effect.fnUntraced(function* (change: unknown) {
      // Each entry of the audit log has a different time
      yield* TestClock.adjust("1 millis")
      const answer = yield* operator("PATCH", at, change)
      assert.strictEqual(answer.status, 200, answer.text)
      return answer.json
    })
  }
})

describe("limits that the operator sets on one user", () => {
  layer(layerGateway({ database: stores.postgres }))((it) => {
    it.effect("are shown by PATCH, GET and the list; absent members stay, and null removes", () =>
      Effect.gen(function* () {
        const { at, call, id, set } = yield* makeLimited
        const before = (yield* operator("GET", at)).json
        assert.deepInclude(before, {
          trigger_threshold: "1000.00",
          rate_limit_per_minute: null,
          concurrent_tasks: null
        })
        const limits = {
          trigger_threshold: "12.50",
          rate_limit_per_minute: 60,
          concurrent_tasks: 3
        }
        const expected = { ...before, ...limits }
        assert.deepStrictEqual(yield* set(limits), expected)
        assert.deepStrictEqual((yield* operator("GET", at)).json, expected)
        const listed = (yield* operator("GET", `${manage}/users?limit=100`)).json.data
        assert.deepStrictEqual(
          listed.find((it: { id: string }) => it.id === id),
          {
            ...expected,
            settled_balance: "1000.00",
            available_balance: "1000.00",
            spent_this_month: "0.00"
          }
        )
        assert.strictEqual((yield* call("GET", `${manage}/wallet`)).json.trigger_threshold, "12.50")
        assert.deepStrictEqual(yield* set({ name: "Named" }), { ...expected, name: "Named" })
        assert.deepStrictEqual(
          yield* set({ name: null, rate_limit_per_minute: null, concurrent_tasks: null }),
          { ...before, trigger_threshold: "12.50" }
        )
        const log = (yield* operator("GET", `${manage}/audit-log?type=updateUser&user_id=${id}`))
          .json.data
        assert.deepStrictEqual(
          log.map(({ changes }: { changes: unknown }) => changes),
          [
            { name: null, rate_limit_per_minute: null, concurrent_tasks: null },
            { name: "[hidden]" },
            limits
          ]
        )
        for (const [pointer, change] of [
          ["#/trigger_threshold", { trigger_threshold: "-1" }],
          ["#/trigger_threshold", { trigger_threshold: null }],
          ["#/rate_limit_per_minute", { rate_limit_per_minute: 0 }],
          ["#/concurrent_tasks", { concurrent_tasks: 1.5 }]
        ] as const) {
          const { json } = yield* operator("PATCH", at, change)
          assert.deepStrictEqual([json.code, json.errors[0].pointer], [2001, pointer])
        }
        const own = yield* call("PATCH", at, limits)
        assert.deepStrictEqual([own.status, own.json.code], [403, 1004])
      })
    )

    it.effect(
      "rate_limit_per_minute: applies to all keys, even cached and new ones, for tasks and calls",
      () =>
        Effect.gen(function* () {
          const { call, second, set, ...user } = yield* makeLimited
          // Cached, without a limit
          for (const ask of [call, second]) {
            assert.strictEqual((yield* ask("POST", chat, hello)).status, 200)
          }
          yield* set({ rate_limit_per_minute: 4 })
          const third = yield* anotherKey({ call, ...user })
          const answers = [
            yield* call("POST", chat, hello),
            yield* second("POST", path, body),
            yield* third("POST", chat, hello),
            yield* third("GET", "/v1/models")
          ]
          assert.deepStrictEqual(
            answers.map(({ headers }) => headers.get("ratelimit-remaining")),
            ["3", "2", "1", "0"]
          )
          for (const ask of [call, second, third]) {
            for (const [at, payload] of [
              [chat, hello],
              [path, body]
            ] as const) {
              const refused = yield* ask("POST", at, payload)
              assert.deepStrictEqual([refused.status, refused.json.code], [429, 1201])
              assert.match(refused.json.detail, /user/u)
            }
          }
          yield* set({ rate_limit_per_minute: null })
          for (const ask of [call, second, third]) {
            assert.strictEqual((yield* ask("POST", chat, hello)).status, 200)
          }
        })
    )

    it.effect(
      "concurrent_tasks: applies to all keys together, and is exact for 20 creates at once",
      () =>
        Effect.gen(function* () {
          const { call, second, set } = yield* makeLimited
          yield* set({ concurrent_tasks: 3 })
          const answers = yield* Effect.all(
            Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? call : second)("POST", path, body)),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(answers.filter(({ status }) => status === 202).length, 3)
          const refused = answers.filter(({ json }) => json.code === 1202)
          assert.strictEqual(refused.length, 17)
          assert.match(refused[0]!.json.detail, /user/u)
          yield* set({ concurrent_tasks: null })
          assert.strictEqual((yield* second("POST", path, body)).status, 202)
        })
    )

    it.effect("trigger_threshold: makes a balance above it NORMAL again", () =>
      Effect.gen(function* () {
        const { at, call, id, set } = yield* makeLimited
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE wallets SET state = 'ALERTED' WHERE user_id = ${id}`
        yield* set({ trigger_threshold: "0" })
        assert.deepInclude((yield* call("GET", `${manage}/wallet`)).json, {
          trigger_threshold: "0.00",
          state: "NORMAL"
        })
        assert.strictEqual((yield* operator("GET", at)).json.trigger_threshold, "0.00")
      })
    )

    it.effect(
      "are changed together with the user's fields, keys and audit entry, or not at all",
      () =>
        Effect.gen(function* () {
          const { at, call, id } = yield* makeLimited
          const other = yield* makeUser()
          yield* operator("PATCH", `${manage}/users/${other.id}`, {
            email: `${other.id}@x.example`
          })
          const before = (yield* operator("GET", at)).json
          const entries = operator("GET", `${manage}/audit-log?type=updateUser&user_id=${id}`)
          const change = { disabled: true, rate_limit_per_minute: 5, trigger_threshold: "1.00" }
          const taken = yield* operator("PATCH", at, { ...change, email: `${other.id}@x.example` })
          assert.deepStrictEqual([taken.status, taken.json.code], [409, 2010])
          assert.deepStrictEqual((yield* operator("GET", at)).json, before)
          assert.deepStrictEqual((yield* entries).json.data, [])
          // Disabling is the last of the changes, and a failure there rolls the others back
          const sql = yield* SqlClient.SqlClient
          yield* sql`
          ALTER TABLE api_keys ADD CONSTRAINT refused CHECK (disabled_at IS NULL) NOT VALID`
          const failed = yield* operator("PATCH", at, { ...change, name: "Half" })
          yield* sql`ALTER TABLE api_keys DROP CONSTRAINT refused`
          assert.strictEqual(failed.status, 500)
          assert.deepStrictEqual((yield* operator("GET", at)).json, before)
          assert.deepStrictEqual((yield* entries).json.data, [])
          assert.strictEqual((yield* call("GET", `${manage}/wallet`)).status, 200)
          assert.strictEqual(
            (yield* operator("PATCH", at, { ...change, name: "Whole" })).status,
            200
          )
          assert.lengthOf((yield* entries).json.data, 1)
          assert.strictEqual((yield* call("GET", `${manage}/wallet`)).json.code, 1003)
        })
    )
  })

  const env = { USER_RATE_LIMIT_PER_MINUTE: "2", CONCURRENT_TASKS_PER_USER: "1" }
  layer(layerGateway({ database: stores.postgres, env }))((it) => {
    it.effect("replace the configured ones, whether lower or higher", () =>
      Effect.gen(function* () {
        const { call, set } = yield* makeLimited
        yield* set({ rate_limit_per_minute: 5, concurrent_tasks: 2 })
        const answers = [
          yield* call("POST", path, body),
          yield* call("POST", path, body),
          yield* call("POST", path, body)
        ]
        assert.deepStrictEqual(
          answers.map(({ headers }) => headers.get("ratelimit-limit")),
          ["5", "5", "5"]
        )
        assert.deepStrictEqual(
          answers.map(({ json, status }) => json.code ?? status),
          [202, 202, 1202]
        )
        yield* set({ rate_limit_per_minute: 1 })
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* call("GET", nobody)).status, 404)
        const refused = yield* call("GET", nobody)
        assert.deepStrictEqual(rateOf(refused.headers).slice(0, 2), ["1", "0"])
      })
    )
  })
})
