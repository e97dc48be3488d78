import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { advance, layerGateway, makeUser } from "../../support/gateway.ts"
import { startedDatabase } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const slow = { prompt: "[[sim:slow=10s]]" }
const wait = { prefer: "wait=60" }

/** Each user has 1000 credits; a task costs 7.50. */
layer(layerGateway({ database: startedDatabase }), { timeout: "60 seconds" })(
  "POST that waits",
  (it) => {
    it.effect("is 200 with the body of GET as soon as the task is terminal", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const waiting = yield* Effect.forkChild(user.call("POST", path, slow, wait))
        yield* advance("9 seconds")
        assert.isUndefined(waiting.pollUnsafe())
        yield* advance("3 seconds")
        const answer = yield* Fiber.join(waiting)
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.json.task_info.status, "completed")
        assert.lengthOf(answer.json.images, 1)
        for (const [name, value] of [
          ["preference-applied", "wait=60"],
          ["x-service-cost", "7.50"],
          ["x-service-balance", "992.50"],
          ["cache-control", "no-store"],
          ["x-service-sandbox", "true"]
        ] as const) {
          assert.strictEqual(answer.headers.get(name), value, name)
        }
        const read = yield* user.call("GET", `${path}/${answer.json.task_info.id}`)
        assert.strictEqual(answer.text, read.text)
      })
    )

    it.effect("is 200 for a failed task, with no cost", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const body = { prompt: "[[sim:fail]]" }
        const waiting = yield* Effect.forkChild(user.call("POST", path, body, wait))
        yield* advance("30 seconds")
        const { headers, json, status } = yield* Fiber.join(waiting)
        assert.strictEqual(status, 200)
        assert.strictEqual(json.task_info.error.code, 3005)
        assert.strictEqual(headers.get("x-service-cost"), "0.00")
      })
    )

    it.effect("is the usual 202 when the time is over, also for a time of zero", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const body = { prompt: "[[sim:hang]]" }
        const plain = yield* user.call("POST", path, body)
        for (const seconds of [5, 0]) {
          const prefer = `respond-async, wait=${seconds}`
          const waiting = yield* Effect.forkChild(user.call("POST", path, body, { prefer }))
          yield* advance(`${seconds + 1} seconds`)
          const { headers, json, status } = yield* Fiber.join(waiting)
          assert.strictEqual(status, 202)
          assert.hasAllKeys(json.task_info, Object.keys(plain.json.task_info))
          assert.strictEqual(headers.get("preference-applied"), `wait=${seconds}`)
          assert.strictEqual(headers.get("x-service-cost"), "7.50")
          assert.isTrue(headers.has("x-service-balance"))
        }
        assert.isFalse(plain.headers.has("preference-applied"))
      })
    )

    it.effect("waits for the same task on a repeat", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const key = { "idempotency-key": "order-1" }
        const first = yield* user.call("POST", path, slow, key)
        const both = yield* Effect.forkChild(
          Effect.forEach([1, 2], () => user.call("POST", path, slow, { ...key, ...wait }), {
            concurrency: 2
          })
        )
        yield* advance("12 seconds")
        for (const { headers, json, status } of yield* Fiber.join(both)) {
          assert.strictEqual(status, 200)
          assert.strictEqual(json.task_info.id, first.json.task_info.id)
          assert.strictEqual(json.task_info.status, "completed")
          assert.strictEqual(headers.get("idempotency-replayed"), "true")
          assert.strictEqual(headers.get("preference-applied"), "wait=60")
        }
        const later = yield* user.call("POST", path, slow, key)
        assert.strictEqual(later.status, 202)
        assert.strictEqual(later.text, first.text)
      })
    )

    it.effect("is the first 202 if the task no longer exists", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const key = { "idempotency-key": "order-2" }
        const waiting = yield* Effect.forkChild(user.call("POST", path, slow, { ...key, ...wait }))
        yield* advance("12 seconds")
        const { id } = (yield* Fiber.join(waiting)).json.task_info
        const sql = yield* SqlClient.SqlClient
        yield* sql`DELETE FROM tasks WHERE id = ${id}`
        const again = yield* user.call("POST", path, slow, { ...key, ...wait })
        assert.strictEqual(again.status, 202)
        assert.strictEqual(again.json.task_info.id, id)
      })
    )

    it.effect("does not wait for a quote or a refusal", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const quote = yield* user.call("POST", `${path}?dry_run=true`, slow, wait)
        assert.strictEqual(quote.status, 200)
        assert.strictEqual(quote.json.quote.amount, "7.50")
        const refused = yield* user.call("POST", path, { prompt: 1 }, wait)
        assert.strictEqual(refused.status, 400)
        for (const { headers } of [quote, refused]) {
          assert.isFalse(headers.has("preference-applied"))
        }
      })
    )
  }
)
