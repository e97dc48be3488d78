import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import {
  adminToken,
  advance,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator,
  readResult
} from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const keyed = (key: string) => ({ "idempotency-key": key })

layer(layerGateway({ database: stores.postgres }))(
  "Idempotency-Key of the management API",
  (it) => {
    it.effect("50 equal top-ups in parallel: one ledger row, 50 equal responses", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 0 })
        const path = `/manage/v1/users/${user.id}/top-ups`
        const topUp = operator("POST", path, { amount: "10.00" }, keyed("t"))
        const asking = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 50 }, () => topUp),
            { concurrency: "unbounded" }
          )
        )
        // Repeats that arrived while the first request was running poll by the clock
        while (asking.pollUnsafe() === undefined) yield* advance("100 millis", "50 millis")
        const answers = yield* Fiber.join(asking)
        for (const answer of answers) {
          assert.strictEqual(answer.status, 201, answer.text)
          assert.strictEqual(answer.text, answers[0]!.text)
        }
        const replays = answers.filter((it) => it.headers.get("idempotency-replayed") === "true")
        assert.strictEqual(replays.length, 49)
        const wallet = yield* user.call("GET", "/manage/v1/wallet")
        assert.strictEqual(wallet.json.settled_balance, "10.00")
      })
    )

    it.effect("the same key with another amount, or another user, is 422 code 2008", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 0 })
        const other = yield* makeUser({ credits: 0 })
        const pathOf = (id: string) => `/manage/v1/users/${id}/top-ups`
        yield* operator("POST", pathOf(user.id), { amount: "10.00" }, keyed("u"))
        for (const answer of [
          yield* operator("POST", pathOf(user.id), { amount: "20.00" }, keyed("u")),
          yield* operator("POST", pathOf(other.id), { amount: "10.00" }, keyed("u"))
        ]) {
          assert.strictEqual(answer.status, 422)
          assert.strictEqual(answer.json.code, 2008)
        }
        const wallet = yield* user.call("GET", "/manage/v1/wallet")
        assert.strictEqual(wallet.json.settled_balance, "10.00")
      })
    )

    it.effect("spaces and the order of members do not make it a different request", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 0 })
        const path = `/manage/v1/users/${user.id}/top-ups`
        const { fetch } = yield* GatewayHttp
        const send = (body: string) =>
          Effect.flatMap(
            fetch(path, {
              method: "POST",
              headers: {
                authorization: `Bearer ${adminToken}`,
                "content-type": "application/json",
                ...keyed("s")
              },
              body
            }),
            (answer) => Effect.promise(() => readResult(answer))
          )
        const first = yield* send('{"amount":"10.00","note":"a"}')
        assert.strictEqual(first.status, 201, first.text)
        const again = yield* send(' {"note": "a",\n"amount":"10.00"}')
        assert.strictEqual(again.text, first.text)
        assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
      })
    )

    it.effect(
      "an API key created twice with one idempotency key is one API key, and no row has it in plain text",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const make = user.call("POST", "/manage/v1/api-keys", { name: "a" }, keyed("k"))
          const first = yield* make
          const again = yield* make
          assert.strictEqual(first.status, 201)
          assert.isFalse(first.headers.has("idempotency-replayed"))
          assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
          assert.deepStrictEqual(again.json, first.json)
          const listed = yield* user.call("GET", "/manage/v1/api-keys")
          assert.strictEqual(listed.json.data.length, 2)
          const sql = yield* SqlClient.SqlClient
          const rows =
            yield* sql`SELECT response FROM manage_idempotency_keys WHERE caller = ${user.id}`
          const bytes = Buffer.from((rows[0] as { response: Uint8Array }).response)
          assert.isFalse(bytes.includes(first.json.key.slice(3)))
        })
    )

    it.effect(
      "creates of webhook endpoints and users are replayed too; each caller has its own keys",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const endpoint = { url: "https://hooks.example.com/a", events: ["task.failed"] }
          const path = "/manage/v1/webhook-endpoints"
          const first = yield* user.call("POST", path, endpoint, keyed("w"))
          const again = yield* user.call("POST", path, endpoint, keyed("w"))
          assert.strictEqual(first.status, 201, first.text)
          assert.deepStrictEqual(again.json, first.json)
          const person = { email: `${user.id}@example.com` }
          const born = yield* operator("POST", "/manage/v1/users", person, keyed(user.id))
          const reborn = yield* operator("POST", "/manage/v1/users", person, keyed(user.id))
          assert.strictEqual(born.status, 201)
          assert.deepStrictEqual(reborn.json, born.json)
          const otherUser = yield* makeUser()
          const other = yield* otherUser.call("POST", path, endpoint, keyed("w"))
          assert.isFalse(other.headers.has("idempotency-replayed"))
        })
    )

    it.effect("a refused request leaves its key free, and keys expire after 24 hours", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const post = (body: unknown) => user.call("POST", "/manage/v1/api-keys", body, keyed("f"))
        assert.strictEqual((yield* post({ name: "" })).json.code, 2001)
        assert.strictEqual((yield* post({ name: "a" })).status, 201)
        assert.strictEqual((yield* post({ name: "b" })).json.code, 2008)
        const sql = yield* SqlClient.SqlClient
        const age = (by: string) => sql`UPDATE manage_idempotency_keys
        SET created_at = created_at - ${by}::interval WHERE caller = ${user.id}`
        yield* age("24 hours")
        assert.strictEqual((yield* post({ name: "b" })).json.code, 2008)
        yield* age("1 millisecond")
        assert.strictEqual((yield* post({ name: "b" })).status, 201)
      })
    )

    it.effect(
      "credits are never added twice for one key, at any time, and the response says so",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 0 })
          const path = `/manage/v1/users/${user.id}/top-ups`
          const topUp = (amount: string) => operator("POST", path, { amount }, keyed("late"))
          const first = yield* topUp("10.00")
          assert.isFalse(first.headers.has("idempotency-replayed"))
          yield* operator("POST", path, { amount: "1.00" })
          const sql = yield* SqlClient.SqlClient
          yield* sql`DELETE FROM manage_idempotency_keys`
          const late = yield* topUp("10.00")
          assert.deepStrictEqual([late.status, late.text], [201, first.text])
          assert.strictEqual(late.headers.get("idempotency-replayed"), "true")
          yield* sql`DELETE FROM manage_idempotency_keys`
          const other = yield* topUp("20.00")
          assert.deepStrictEqual([other.status, other.json.code], [422, 2008])
          const wallet = yield* user.call("GET", "/manage/v1/wallet")
          assert.strictEqual(wallet.json.settled_balance, "11.00")
        })
    )

    it.effect("a request whose process died may be repeated after a minute", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const make = user.call("POST", "/manage/v1/api-keys", { name: "a" }, keyed("d"))
        yield* make
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE manage_idempotency_keys SET status = NULL, response = NULL WHERE caller = ${user.id}`
        yield* TestClock.adjust("61 seconds")
        const again = yield* make
        assert.strictEqual(again.status, 201)
        assert.isFalse(again.headers.has("idempotency-replayed"))
      })
    )

    it.effect(
      "the first response is repeated after a minute too, and after an expiry the new one",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const post = (name: string) =>
            user.call("POST", "/manage/v1/api-keys", { name }, keyed("m"))
          const first = yield* post("a")
          yield* TestClock.adjust("61 seconds")
          assert.deepStrictEqual((yield* post("a")).json, first.json)
          yield* TestClock.adjust("24 hours")
          const second = yield* post("b")
          assert.strictEqual(second.status, 201)
          assert.deepStrictEqual((yield* post("b")).json, second.json)
          assert.strictEqual((yield* post("a")).json.code, 2008)
          const listed = yield* user.call("GET", "/manage/v1/api-keys")
          assert.strictEqual(listed.json.data.length, 3)
        })
    )
  }
)
