import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { afterAll, beforeEach } from "vitest"
import { CallContents } from "../../../src/users/contents/CallContents.ts"
import { advance, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import type { callWith } from "../../support/gateway.ts"
import { chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { events, json } from "../../support/mockVendors.ts"

/** docs/reference/passthrough.md#requests-and-responses: R-PRIVACY-5, R-PRIVACY-6 */

const manage = "/manage/v1"
const chat = "/v1/chat/completions"
const vendor = await mockOpenAi()
const env = { OPENAI_API_KEY: "sk-secret-of-the-vendor", OPENAI_BASE_URL: `${vendor.origin}/v1` }
beforeEach(() => {
  vendor.script = openAiScript
})
afterAll(() => vendor.close())

const hostile = `</script><img src=x onerror=alert(1)>"'\u202E`
const body = {
  model: "gpt-4o",
  max_tokens: 5,
  messages: [{ role: "user", content: hostile }]
}

/** Each call has a different time, so that ids are ordered. */
const post = (user: ReturnType<typeof callWith>, sent: unknown = body) =>
  Effect.andThen(TestClock.adjust("10 millis"), user("POST", chat, sent))

/** The newest call of a user. */
const lastCall = (user: ReturnType<typeof callWith>, count: number) =>
  Effect.map(
    eventually(user("GET", `${manage}/calls`), ({ json }) => json.data.length === count),
    ({ json }): string => json.data[0].id
  )

const contentOf = (user: ReturnType<typeof callWith>, id: string) =>
  eventually(user("GET", `${manage}/calls/${id}/content`), ({ status }) => status === 200)

const switchOn = (user: ReturnType<typeof callWith>) =>
  user("PATCH", `${manage}/settings`, { keep_calls: true })

const keptRows = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ count: number }>`SELECT count(*)::int AS count FROM call_contents`
  return row!.count
})

describe("requests and responses of calls", () => {
  layer(layerGateway({ env }), { timeout: "120 seconds" })((it) => {
    it.effect("are not kept until their user switches keeping on", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        assert.deepStrictEqual((yield* user.call("GET", `${manage}/settings`)).json, {
          keep_calls: false
        })
        yield* post(user.call)
        const id = yield* lastCall(user.call, 1)
        const missing = yield* user.call("GET", `${manage}/calls/${id}/content`)
        assert.deepStrictEqual([missing.status, missing.json.code], [404, 2005])
        assert.strictEqual(yield* keptRows, 0)
      })
    )

    it.effect("are shown to their user as sent and as relayed, without headers", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        assert.deepStrictEqual((yield* switchOn(user.call)).json, { keep_calls: true })
        const answered = yield* post(user.call)
        const { json: content, text } = yield* contentOf(user.call, yield* lastCall(user.call, 1))
        assert.deepStrictEqual(Object.keys(content), ["call_id", "path", "request", "response"])
        assert.strictEqual(content.path, chat)
        assert.deepStrictEqual(JSON.parse(content.request.text), body)
        assert.deepStrictEqual(content.request, {
          content_type: "application/json",
          text: JSON.stringify(body),
          truncated: false,
          bytes: Buffer.byteLength(JSON.stringify(body))
        })
        assert.deepStrictEqual(JSON.parse(content.response.text), answered.json)
        assert.notInclude(text, user.key)
        assert.notInclude(text, "sk-secret-of-the-vendor")
      })
    )

    it.effect("are encrypted at rest", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const rows = yield* sql<{ sealed: Uint8Array }>`SELECT sealed FROM call_contents`
        assert.isAbove(rows.length, 0)
        for (const { sealed } of rows)
          assert.notInclude(Buffer.from(sealed).toString("latin1"), "gpt-4o")
      })
    )

    it.effect("contain the relayed bytes of a stream, cut off after 64 KiB", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* switchOn(user.call)
        const short = yield* post(user.call, { ...body, stream: true })
        const first = yield* contentOf(user.call, yield* lastCall(user.call, 1))
        assert.strictEqual(first.json.response.text, short.text)
        assert.isFalse(first.json.response.truncated)

        const words = Array.from({ length: 10 }, () => "word ".repeat(2000))
        vendor.script = (_request, response) => events(response, chatEvents(words, true))
        const long = yield* post(user.call, { ...body, stream: true })
        const second = yield* contentOf(user.call, yield* lastCall(user.call, 2))
        const { bytes, text, truncated } = second.json.response
        assert.isTrue(truncated)
        assert.isTrue(long.text.startsWith(text))
        assert.strictEqual(Buffer.byteLength(text), 65_536)
        assert.strictEqual(bytes, Buffer.byteLength(long.text))
      })
    )

    it.effect("contain the error that the client of a refused call received", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* switchOn(user.call)
        vendor.script = (_request, response) =>
          json(response, 400, { error: { message: "No such thing", type: "bad" } })
        const refused = yield* post(user.call)
        assert.strictEqual(refused.status, 400)
        const { json: content } = yield* contentOf(user.call, yield* lastCall(user.call, 1))
        assert.strictEqual(content.response.text, refused.text)
      })
    )

    it.effect("are shown to the operator for a named user, which the audit log records", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const other = yield* makeUser()
        yield* switchOn(user.call)
        yield* post(user.call)
        const id = yield* lastCall(user.call, 1)
        yield* contentOf(user.call, id)
        const path = `${manage}/calls/${id}/content`
        assert.strictEqual((yield* other.call("GET", path)).status, 404)
        assert.strictEqual((yield* operator("GET", path)).status, 403)
        const read = yield* operator("GET", `${path}?user_id=${user.id}`)
        assert.strictEqual(read.json.request.text, JSON.stringify(body))
        const log = yield* user.call("GET", `${manage}/audit-log?type=getCallContent`)
        assert.deepInclude(log.json.data[0], { resource_id: id, user_id: user.id })
        assert.strictEqual(log.json.data[0].actor.type, "operator")
        // Only the user can change this
        const set = yield* operator("PATCH", `${manage}/settings`, { keep_calls: false })
        assert.deepStrictEqual([set.status, set.json.code], [403, 1004])
      })
    )

    it.effect("are part of the export, and are deleted when keeping them is switched off", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* switchOn(user.call)
        yield* post(user.call)
        const id = yield* lastCall(user.call, 1)
        yield* contentOf(user.call, id)
        const exported = yield* user.call("GET", `${manage}/users/${user.id}/export`)
        const rows = exported.text.trim().split("\n")
        const row = rows
          .map((line) => JSON.parse(line))
          .find(({ object }) => object === "call_content")
        assert.deepStrictEqual(Object.keys(row), [
          "object",
          "call_id",
          "created_at",
          "path",
          "request",
          "response"
        ])
        assert.strictEqual(row.request, JSON.stringify(body))
        yield* user.call("PATCH", `${manage}/settings`, { keep_calls: false })
        assert.strictEqual((yield* user.call("GET", `${manage}/calls/${id}/content`)).status, 404)
        yield* post(user.call)
        const next = yield* lastCall(user.call, 2)
        assert.strictEqual((yield* user.call("GET", `${manage}/calls/${next}/content`)).status, 404)
      })
    )

    it.effect("are deleted with their user", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* switchOn(user.call)
        yield* post(user.call)
        yield* contentOf(user.call, yield* lastCall(user.call, 1))
        const before = yield* keptRows
        yield* operator("DELETE", `${manage}/users/${user.id}`)
        assert.strictEqual(yield* keptRows, before - 1)
      })
    )

    it.effect("are kept for the newest 500 calls of a user", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* switchOn(user.call)
        const sql = yield* SqlClient
        yield* sql`
          INSERT INTO call_contents SELECT ${user.id}::uuid,
            ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '\\x00', now()
          FROM generate_series(1, 500) n`
        yield* post(user.call)
        yield* contentOf(user.call, yield* lastCall(user.call, 1))
        const [row] = yield* sql<{ count: number; oldest: string }>`
          SELECT count(*)::int AS count, min(call_id::text) AS oldest FROM call_contents
          WHERE user_id = ${user.id}`
        assert.deepStrictEqual(row, { count: 500, oldest: "00000000-0000-7000-8000-000000000002" })
      })
    )

    it.effect("are kept for at most 120 calls a minute", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* switchOn(user.call)
        for (let call = 0; call < 130; call += 1) yield* post(user.call)
        const sql = yield* SqlClient
        const count = Effect.map(
          sql<{ count: number }>`
            SELECT count(*)::int AS count FROM call_contents WHERE user_id = ${user.id}`,
          ([row]) => row!.count
        )
        yield* eventually(count, (it) => it === 120)
        yield* advance("1 minute", "30 seconds")
        yield* post(user.call)
        yield* eventually(count, (it) => it === 121)
      })
    )
  })

  layer(layerGateway({ env: { ...env, BODY_RETENTION: "1 hour" } }), {
    timeout: "120 seconds"
  })((it) => {
    it.effect("are deleted after BODY_RETENTION", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* switchOn(user.call)
        yield* post(user.call)
        yield* contentOf(user.call, yield* lastCall(user.call, 1))
        const contents = yield* CallContents
        const sql = yield* SqlClient
        // An hour of heartbeats takes too long
        yield* sql`UPDATE call_contents SET created_at = created_at - interval '59 minutes'`
        yield* contents.removeOld
        assert.strictEqual(yield* keptRows, 1)
        yield* sql`UPDATE call_contents SET created_at = created_at - interval '2 minutes'`
        yield* contents.removeOld
        assert.strictEqual(yield* keptRows, 0)
      })
    )
  })
})
