import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { wantsEventStream } from "../../../src/http/server/EventStream.ts"
import { preferredWait } from "../../../src/http/tasks/PreferredWait.ts"
import { advance, GatewayHttp, layerGateway, makeUser, eventually } from "../../support/gateway.ts"
import { startedDatabase } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const hung = { prompt: "[[sim:hang]]" }
const tenSeconds = { prompt: "[[sim:slow=10s]]" }

const created = Effect.fnUntraced(function* (
  user: Effect.Success<ReturnType<typeof makeUser>>,
  body: unknown
) {
  const answer = yield* user.call("POST", path, body)
  assert.strictEqual(answer.status, 202, answer.text)
  return `${path}/${answer.json.task_info.id}`
})

describe("GET that waits", () => {
  layer(layerGateway({ database: startedDatabase }), { timeout: "60 seconds" })((it) => {
    it.effect("with Prefer: wait=N returns as soon as the task is terminal", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const task = yield* created(user, tenSeconds)
        const waiting = yield* Effect.forkChild(
          user.call("GET", task, undefined, { prefer: "wait=60" })
        )
        yield* advance("9 seconds")
        assert.isUndefined(waiting.pollUnsafe())
        yield* advance("3 seconds")
        const answer = yield* Fiber.join(waiting)
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.json.task_info.status, "completed")
        assert.strictEqual(answer.headers.get("preference-applied"), "wait=60")
        assert.isFalse(answer.headers.has("retry-after"))
      })
    )

    it.effect("with Prefer: wait=N returns the current state after N seconds", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const task = yield* created(user, hung)
        const waiting = yield* Effect.forkChild(
          user.call("GET", task, undefined, { prefer: "respond-async, wait=5" })
        )
        yield* advance("4 seconds")
        assert.isUndefined(waiting.pollUnsafe())
        yield* advance("2 seconds")
        const answer = yield* Fiber.join(waiting)
        assert.strictEqual(answer.json.task_info.status, "processing")
        assert.strictEqual(answer.headers.get("preference-applied"), "wait=5")
        assert.strictEqual(answer.headers.get("retry-after"), "2")
      })
    )

    it.effect("returns within two seconds of a move by another process", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const task = yield* created(user, hung)
        const waiting = yield* Effect.forkChild(
          user.call("GET", task, undefined, { prefer: "wait=60" })
        )
        yield* advance("3 seconds")
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE tasks SET status = 'failed',
          error = '{"code":4004,"title":"Cancelled","detail":"elsewhere"}'::jsonb
          WHERE id = ${task.split("/").at(-1)!}`
        yield* advance("2 seconds")
        const answer = yield* Fiber.join(waiting)
        assert.strictEqual(answer.json.task_info.error.detail, "elsewhere")
      })
    )

    it.effect(
      "with Accept: text/event-stream sends the state, each move and heartbeats, and ends",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const task = yield* created(user, { prompt: "[[sim:slow=40s]]" })
          const http = yield* GatewayHttp
          const response = yield* http.fetch(task, {
            headers: {
              authorization: `Bearer ${user.key}`,
              accept: "text/event-stream",
              traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            }
          })
          assert.strictEqual(response.status, 200)
          assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/u)
          assert.match(
            response.headers.get("traceparent") ?? "",
            /^00-4bf92f3577b34da6a3ce929d0e0e4736-/u
          )
          assert.strictEqual(response.headers.get("cache-control"), "no-store")
          const reading = yield* Effect.forkChild(Effect.promise(() => response.text()))
          yield* advance("45 seconds")
          const text = yield* Fiber.join(reading)
          const events = text
            .split("\n\n")
            .filter((it) => it.startsWith("data: "))
            .map((it) => JSON.parse(it.slice(6)))
          const statuses = events.map((it) => it.task_info.status)
          assert.deepStrictEqual(statuses.slice(-2), ["processing", "completed"])
          assert.deepStrictEqual([...new Set(statuses)], statuses)
          assert.isAtLeast(text.split(": still here").length - 1, 2)
          const plain = yield* user.call("GET", task)
          assert.deepStrictEqual(events.at(-1), plain.json)
        })
    )

    it.effect("streams one event of a task that has ended", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const task = yield* created(user, hung)
        yield* user.call("DELETE", task)
        const answer = yield* user.call("GET", task, undefined, { accept: "text/event-stream" })
        assert.match(answer.text, /^data: \{.*"failed".*4004.*\}\n\n$/u)
      })
    )

    it.effect("streams processing after pending even if the task ended at once", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const sql = yield* SqlClient.SqlClient
        const task = yield* created(user, hung)
        const id = task.split("/").at(-1)!
        yield* eventually(
          user.call("GET", task),
          ({ json }) => json.task_info.status === "processing"
        )
        yield* sql`UPDATE tasks SET status = 'pending' WHERE id = ${id}`
        const http = yield* GatewayHttp
        const response = yield* http.fetch(task, {
          headers: { authorization: `Bearer ${user.key}`, accept: "text/event-stream" }
        })
        yield* sql`UPDATE tasks SET status = 'completed', result = '["https://a"]'::jsonb WHERE id = ${id}`
        const reading = yield* Effect.forkChild(Effect.promise(() => response.text()))
        yield* advance("2 seconds")
        const statuses = [...(yield* Fiber.join(reading)).matchAll(/"status":"(\w+)"/gu)].map(
          (it) => it[1]
        )
        assert.deepStrictEqual(statuses, ["pending", "processing", "completed"])
      })
    )

    it.effect("returns a problem to another user, as a wait and as a stream", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const otherUser = yield* makeUser()
        const task = yield* created(user, hung)
        for (const headers of [{ prefer: "wait=5" }, { accept: "text/event-stream" }]) {
          const answer = yield* otherUser.call("GET", task, undefined, headers)
          assert.strictEqual(answer.json.code, 2005)
        }
        yield* TestClock.adjust(1)
      })
    )

    it.effect("has Retry-After, no-store and ETag, and is 304 for an unchanged task", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const task = yield* created(user, hung)
        yield* advance("1 second")
        const first = yield* user.call("GET", task)
        assert.strictEqual(first.headers.get("retry-after"), "2")
        assert.strictEqual(first.headers.get("cache-control"), "no-store")
        assert.strictEqual(first.headers.get("x-service-cost"), "7.50")
        const etag = first.headers.get("etag") ?? ""
        const same = yield* user.call("GET", task, undefined, { "if-none-match": `"x", W/${etag}` })
        assert.strictEqual(same.status, 304)
        assert.deepStrictEqual([same.text, same.headers.get("etag")], ["", etag])
        yield* user.call("DELETE", task)
        const moved = yield* user.call("GET", task, undefined, { "if-none-match": etag })
        assert.strictEqual(moved.status, 200)
        assert.strictEqual(moved.headers.get("x-service-cost"), "0.00")
      })
    )

    it.effect("a dry run returns the quote and creates no task, hold or event", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 0 })
        const quoted = yield* user.call("POST", `${path}?dry_run=true`, { prompt: "a" })
        assert.strictEqual(quoted.status, 200)
        assert.deepStrictEqual(quoted.json, { quote: { amount: "7.50", currency: "credits" } })
        const wrong = yield* user.call("POST", `${path}?dry_run=true`, { prompt: 1, seed: -1 })
        assert.strictEqual(wrong.json.code, 2001)
        assert.strictEqual(wrong.json.errors.length, 2)
        const odd = yield* user.call("POST", `${path}?dry_run=perhaps`, { prompt: "a" })
        assert.strictEqual(odd.json.errors[0].pointer, "#/query/dry_run")
        const sql = yield* SqlClient.SqlClient
        for (const table of ["tasks", "holds", "events"]) {
          const rows = yield* sql.unsafe(`SELECT 1 FROM ${table} WHERE user_id = $1`, [user.id])
          assert.strictEqual(rows.length, 0, table)
        }
      })
    )
  })

  it("parses Prefer by RFC 7240 and grants at most 60 seconds", () => {
    const seconds = (header: string | undefined) => {
      const found = preferredWait(header)
      return found._tag === "Some" ? found.value : undefined
    }
    assert.strictEqual(seconds(undefined), undefined)
    assert.strictEqual(seconds("wait=0"), 0)
    assert.strictEqual(seconds("wait=60"), 60)
    assert.strictEqual(seconds("wait=61"), 60)
    assert.strictEqual(seconds("return=minimal, Wait=7; foo=1"), 7)
    for (const header of ["wait", "wait=", "wait=-1", "wait=x", "wait=1.5", "await=5"]) {
      assert.strictEqual(seconds(header), undefined, header)
    }
  })

  it("streams only if Accept has the media type", () => {
    for (const accept of ["text/event-stream", "application/json;q=0.5, Text/Event-Stream"]) {
      assert.isTrue(wantsEventStream(accept), accept)
    }
    for (const accept of [
      undefined,
      "*/*",
      "text/*",
      "application/json, text/event-stream;q=0.9",
      "text/event-stream;q=0"
    ]) {
      assert.isFalse(wantsEventStream(accept), accept)
    }
  })
})
