import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { layerGateway, makeUser } from "../../support/gateway.ts"

/** docs/reference/keys-and-limits.md#maximum-of-a-request */

const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const chat = "/v1/chat/completions"
/** Costs 7.50 credits and does not end by itself. */
const body = { prompt: "[[sim:hang]]" }
const hello = { model: "gpt-4o", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] }

layer(layerGateway(), { timeout: "60 seconds" })("X-Service-Max-Cost", (it) => {
  const most = (amount: string) => ({ "x-service-max-cost": amount })

  it.effect("refuses a create that costs more with 402 code 1103, before any task or hold", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const sql = yield* SqlClient.SqlClient
      for (const amount of ["7.49", "7.499999", "0"]) {
        const refused = yield* user.call("POST", image, body, most(amount))
        assert.deepStrictEqual([refused.status, refused.json.code], [402, 1103])
        assert.include(refused.json.detail, "7.50")
      }
      const entries =
        yield* sql`SELECT FROM wallet_entries WHERE user_id = ${user.id} AND kind = 'hold'`
      assert.isEmpty(entries)
      assert.isEmpty(yield* sql`SELECT FROM tasks WHERE user_id = ${user.id}`)
      assert.strictEqual((yield* user.call("POST", image, body, most("7.50"))).status, 202)
    })
  )

  it.effect("does not apply to a repeated create", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const key = { "idempotency-key": "k" }
      const first = yield* user.call("POST", image, body, { ...key, ...most("8") })
      const again = yield* user.call("POST", image, body, { ...key, ...most("1") })
      assert.deepStrictEqual([again.status, again.text], [202, first.text])
      const fresh = yield* user.call("POST", image, body, {
        ...most("1"),
        "idempotency-key": "l"
      })
      assert.strictEqual(fresh.json.code, 1103)
    })
  )

  it.effect("refuses a call that can cost more, before its hold", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const sql = yield* SqlClient.SqlClient
      const refused = yield* user.call("POST", chat, hello, most("0.01"))
      assert.deepStrictEqual([refused.status, refused.json.code], [402, 1103])
      assert.isEmpty(
        yield* sql`SELECT FROM wallet_entries WHERE user_id = ${user.id} AND kind = 'hold'`
      )
      // With all decimals, so that the amount in the detail is sufficient
      const tiny = { ...hello, model: "gpt-4o-mini", max_tokens: 1 }
      const named = yield* user.call("POST", chat, tiny, most("0"))
      const [, cost = ""] = /can cost up to (0\.0\d+) credits$/u.exec(named.json.detail) ?? []
      assert.isAbove(Number(cost), 0)
      const less = String(Number((Number(cost) - 0.000001).toFixed(6)))
      assert.strictEqual((yield* user.call("POST", chat, tiny, most(less))).json.code, 1103)
      assert.strictEqual((yield* user.call("POST", chat, tiny, most(cost))).status, 200)
      const cheap = yield* user.call("POST", chat, { ...hello, max_tokens: 1 }, most("1"))
      assert.strictEqual(cheap.status, 200, cheap.text)
      // Free
      assert.strictEqual((yield* user.call("GET", "/v1/models", undefined, most("0"))).status, 200)
    })
  )

  it.effect("is 400 code 2001 with a pointer if it is not an amount", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      for (const amount of ["", "-1", "1e3", "many"]) {
        for (const [path, payload] of [
          [image, body],
          [chat, hello]
        ] as const) {
          const { json } = yield* user.call("POST", path, payload, most(amount))
          assert.deepStrictEqual(
            [json.code, json.errors[0].pointer],
            [2001, "#/headers/x-service-max-cost"]
          )
        }
      }
    })
  )
})
