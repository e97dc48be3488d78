import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { GatewayHttp, layerGateway, makeUser, readResult } from "../../support/gateway.ts"
import type { HttpResult } from "../../support/gateway.ts"
import { beginPost } from "../../support/slowBody.ts"
import { stores } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const body = { prompt: "A lighthouse [[sim:slow=1h]]" }
const keyed = (key: string) => ({ "idempotency-key": key })

const shown = ({ headers, status, text }: HttpResult) => ({
  status,
  text,
  cost: headers.get("x-service-cost"),
  balance: headers.get("x-service-balance"),
  sandbox: headers.get("x-service-sandbox")
})

const countOf = Effect.fnUntraced(function* (table: string, userId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe(`SELECT 1 FROM ${table} WHERE user_id = $1`, [userId])
  return rows.length
})

layer(layerGateway({ database: stores.postgres }))("Idempotency-Key", (it) => {
  it.effect(
    "makes 50 equal creates in parallel one task with one hold and 50 equal responses",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const answers = yield* Effect.all(
          Array.from({ length: 50 }, () => user.call("POST", path, body, keyed("k"))),
          { concurrency: "unbounded" }
        )
        const first = answers.find((it) => !it.headers.has("idempotency-replayed"))
        assert.strictEqual(first?.status, 202, first?.text)
        for (const answer of answers) assert.deepStrictEqual(shown(answer), shown(first!))
        const replays = answers.filter((it) => it.headers.get("idempotency-replayed") === "true")
        assert.strictEqual(replays.length, 49)
        assert.strictEqual(shown(first!).cost, "7.50")
        assert.strictEqual(shown(first!).balance, "992.50")
        for (const table of ["tasks", "holds", "events", "idempotency_keys"]) {
          assert.strictEqual(yield* countOf(table, user.id), 1, table)
        }
      })
  )

  it.effect("is 422 code 2008 with another body or on another path", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      yield* user.call("POST", path, body, keyed("k"))
      const other = yield* user.call("POST", path, { prompt: "Another" }, keyed("k"))
      assert.deepInclude(other.json, { status: 422, code: 2008 })
      assert.strictEqual(other.status, 422)
      const faulty = yield* user.call("POST", path, { prompt: 1 }, keyed("k"))
      assert.deepStrictEqual([faulty.status, faulty.json.code], [422, 2008])
      const elsewhere = "/vendors/alibaba/v1/text-to-image-preview/generation"
      const moved = yield* user.call("POST", elsewhere, body, keyed("k"))
      assert.strictEqual(moved.json.code, 2008)
      assert.strictEqual(yield* countOf("tasks", user.id), 1)
    })
  )

  it.effect(
    "is for the same request whatever its spaces, order of members, byte order mark or host",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { fetch } = yield* GatewayHttp
        const headers = {
          authorization: `Bearer ${user.key}`,
          "content-type": "application/json"
        }
        const send = (text: string, host = "") =>
          Effect.flatMap(
            fetch(`${host}${path}`, {
              method: "POST",
              headers: { ...headers, ...keyed("k") },
              body: text
            }),
            (answer) => Effect.promise(() => readResult(answer))
          )
        const first = yield* send('{"prompt":"A lighthouse [[sim:slow=1h]]","seed":7}')
        assert.strictEqual(first.status, 202, first.text)
        for (const again of [
          yield* send(' { "seed" : 7.0,\n "prompt":"A light\\u0068ouse [[sim:slow=1h]]" } '),
          yield* send('\ufeff{"prompt":"A lighthouse [[sim:slow=1h]]","seed":7}'),
          yield* send(
            '{"prompt":"A lighthouse [[sim:slow=1h]]","seed":7}',
            "http://another-name.test"
          )
        ]) {
          assert.deepStrictEqual(shown(again), shown(first))
          assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
        }
        assert.strictEqual(yield* countOf("tasks", user.id), 1)
      })
  )

  it.effect("belongs to one user, and expires after 24 hours", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const otherUser = yield* makeUser()
      const first = yield* user.call("POST", path, body, keyed("k"))
      const other = yield* otherUser.call("POST", path, body, keyed("k"))
      assert.isFalse(other.headers.has("idempotency-replayed"))
      const sql = yield* SqlClient.SqlClient
      const age = (by: string) => sql`UPDATE idempotency_keys
        SET created_at = created_at - ${by}::interval WHERE user_id = ${user.id}`
      yield* age("24 hours")
      const again = yield* user.call("POST", path, body, keyed("k"))
      assert.deepStrictEqual(shown(again), shown(first))
      yield* age("1 millisecond")
      const fresh = yield* user.call("POST", path, { prompt: "Another" }, keyed("k"))
      assert.strictEqual(fresh.status, 202)
      assert.isFalse(fresh.headers.has("idempotency-replayed"))
      assert.notStrictEqual(fresh.json.task_info.id, first.json.task_info.id)
    })
  )

  it.effect("does not replay to an API key that was revoked while the body was arriving", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const first = yield* user.call("POST", path, body, keyed("k"))
      assert.strictEqual(first.status, 202)
      const batches = "/v1/messages/batches"
      const params = { model: "claude-haiku-4-5", max_tokens: 1, messages: [] }
      const batch = { requests: [{ custom_id: "a", params }] }
      const created = yield* user.call("POST", batches, batch, keyed("b"))
      assert.strictEqual(created.status, 200)
      const headers = { authorization: `Bearer ${user.key}`, ...keyed("k") }
      // The second is refused before its acceptance, where repeats are also searched for
      const late = [yield* beginPost(path, headers, body), yield* beginPost(path, headers, {})]
      const lateBatch = yield* beginPost(batches, { ...headers, ...keyed("b") }, batch)
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE api_keys SET revoked_at = created_at WHERE user_id = ${user.id}`
      const [same, other] = [yield* late[0]!.finish, yield* late[1]!.finish]
      assert.deepStrictEqual([same.status, same.json.code], [401, 1003])
      assert.strictEqual(same.json.detail, "This API key was revoked")
      const again = yield* lateBatch.finish
      assert.deepStrictEqual([again.status, again.json.code], [401, 1003])
      assert.deepStrictEqual([other.status, other.json.code], [400, 2001])
    })
  )

  it.effect("stays free after a refused create", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 0 })
      const poor = yield* user.call("POST", path, body, keyed("k"))
      assert.strictEqual(poor.json.code, 1101)
      assert.strictEqual(poor.status, 402)
      const wrong = yield* user.call("POST", path, { prompt: 1 }, keyed("k"))
      assert.strictEqual(wrong.json.code, 2001)
      for (const table of ["tasks", "holds", "events", "idempotency_keys"]) {
        assert.strictEqual(yield* countOf(table, user.id), 0, table)
      }
    })
  )

  it.effect("has 1 to 255 characters; others are 400 code 2001", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      assert.strictEqual((yield* user.call("POST", path, body, keyed("x"))).status, 202)
      assert.strictEqual((yield* user.call("POST", path, body, keyed("x".repeat(255)))).status, 202)
      for (const key of ["", "x".repeat(256)]) {
        for (const url of [path, `${path}?dry_run=true`]) {
          const refused = yield* user.call("POST", url, body, keyed(key))
          assert.strictEqual(refused.json.code, 2001, url)
          assert.strictEqual(refused.json.errors[0].pointer, "#/headers/idempotency-key")
        }
      }
    })
  )
})
