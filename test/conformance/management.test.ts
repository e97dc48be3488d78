import { assert, describe, it as liveIt, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { pricePeriods } from "../../src/catalog/PriceRow.ts"
import { withBuiltIn } from "../../src/catalog/UpstreamCatalog.ts"
import { callWith, eventually, layerGateway, makeUser, operator } from "../support/gateway.ts"
import type { HttpResult } from "../support/gateway.ts"
import { GatewayProcess } from "../support/gatewayProcess.ts"
import { until } from "../support/until.ts"
import { startReceiver } from "../support/webhookReceiver.ts"

/** docs/reference/http.md#management-api, request by request: permission, status, and members in order. */

const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const manage = "/manage/v1"

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u

const assertMembers = (answer: HttpResult, status: number, members: ReadonlyArray<string>) => {
  assert.strictEqual(answer.status, status, answer.text)
  assert.deepStrictEqual(Object.keys(answer.json), members)
  for (const name of ["created_at", "updated_at"]) {
    if (members.includes(name)) assert.match(answer.json[name], iso)
  }
}

const user = [
  "id",
  "email",
  "name",
  "created_at",
  "disabled",
  "trigger_threshold",
  "rate_limit_per_minute",
  "concurrent_tasks"
]
const newKey = ["id", "key", "preview", "name", "scopes", "created_at", "expires_at"]
const keyDetails = [
  "id",
  ...newKey.slice(2),
  "last_used_at",
  "spend_limit",
  "reset",
  "spent",
  "held",
  "remaining",
  "resets_at",
  "allowed_models",
  "rate_limit_per_minute",
  "concurrent_tasks",
  "old_key_expires_at"
]
const noSpendLimit = {
  spend_limit: null,
  reset: null,
  spent: null,
  held: null,
  remaining: null,
  resets_at: null
}
const hang = { prompt: "[[sim:hang]]" }
const endpoint = [
  "id",
  "url",
  "events",
  "format",
  "description",
  "enabled",
  "filter",
  "secret_preview"
]
const metadata = ["old_secret_expires_at", "created_at", "updated_at"]
const shown = [...endpoint.slice(0, 7), "secret", "secret_preview", ...metadata]
const masked = [...endpoint, ...metadata, "health"]
const wallet = [
  "available_balance",
  "settled_balance",
  "held_balance",
  "trigger_threshold",
  "currency",
  "state"
]

const hook = { url: "https://hooks.example.com/a", events: ["task.succeeded"] }

describe("the management API", () => {
  layer(layerGateway(), { timeout: "60 seconds" })((it) => {
    it.effect("lets only the operator create, list and change users; a user may GET itself", () =>
      Effect.gen(function* () {
        const made = yield* operator("POST", `${manage}/users`, { email: "a@example.com" })
        assertMembers(made, 201, user)
        assert.match(made.json.id, uuid)
        assert.isNull(made.json.name)
        const at = `${manage}/users/${made.json.id}`
        const whole = { email: "b@example.com", name: "B", password: "long enough" }
        assertMembers(yield* operator("POST", `${manage}/users`, whole), 201, user)
        assertMembers(yield* operator("GET", at), 200, user)
        const changed = yield* operator("PATCH", at, { name: "A" })
        assertMembers(changed, 200, user)
        assert.deepStrictEqual(changed.json, { ...made.json, name: "A" })
        const listed = yield* operator("GET", `${manage}/users?q=a@example.com`)
        assert.deepStrictEqual(Object.keys(listed.json.data[0]), [
          ...user,
          "available_balance",
          "settled_balance",
          "spent_this_month"
        ])
        const otherUser = yield* makeUser()
        for (const [method, path, body] of [
          ["POST", `${manage}/users`, { email: "c@example.com" }],
          ["GET", `${manage}/users`, undefined],
          ["GET", at, undefined],
          ["GET", `${manage}/operator/search?q=a`, undefined],
          ["GET", `${manage}/operator/tasks`, undefined],
          ["GET", `${manage}/operator/calls`, undefined],
          ["PATCH", at, { name: "C" }],
          ["POST", `${at}/api-keys`, { name: "k" }],
          ["POST", `${at}/top-ups`, { amount: "1.00" }],
          ["POST", `${at}/adjustments`, { amount: "1.00", note: "n" }]
        ] as const) {
          const refused = yield* otherUser.call(method, path, body)
          assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004], path)
        }
        const own = yield* otherUser.call("GET", `${manage}/users/${otherUser.id}`)
        assertMembers(own, 200, user)
        assert.strictEqual(own.json.id, otherUser.id)
      })
    )

    it.effect("returns the wallet for a top-up without a note and an adjustment with one", () =>
      Effect.gen(function* () {
        const { id } = yield* makeUser({ credits: 0 })
        const topped = yield* operator("POST", `${manage}/users/${id}/top-ups`, {
          amount: "1000.00"
        })
        assertMembers(topped, 201, wallet)
        assert.deepStrictEqual(topped.json, {
          available_balance: "1000.00",
          settled_balance: "1000.00",
          held_balance: "0.00",
          trigger_threshold: "1000.00",
          currency: "credits",
          state: "NORMAL"
        })
        const change = { amount: "-2.50", note: "correction" }
        const adjusted = yield* operator("POST", `${manage}/users/${id}/adjustments`, change)
        assertMembers(adjusted, 201, wallet)
        assert.strictEqual(adjusted.json.settled_balance, "997.50")
        const { amount } = change
        const refused = yield* operator("POST", `${manage}/users/${id}/adjustments`, { amount })
        assert.deepStrictEqual(
          [refused.status, refused.json.code, refused.json.errors[0].pointer],
          [400, 2001, "#/note"]
        )
      })
    )

    it.effect("shows a key once and then only its preview, until DELETE revokes it", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const expires_at = "2099-01-01T00:00:00.000Z"
        const body = { name: "a", scopes: ["inference", "manage"], expires_at }
        for (const made of [
          yield* owner.call("POST", `${manage}/api-keys`, body),
          yield* operator("POST", `${manage}/users/${owner.id}/api-keys`, body)
        ]) {
          assertMembers(made, 201, newKey)
          const { key, preview } = made.json
          assert.match(key, /^sk-/u)
          assert.strictEqual(preview, `sk-...${key.slice(-4)}`)
          assert.deepInclude(made.json, body)
          assert.strictEqual((yield* callWith(key)("GET", `${manage}/wallet`)).status, 200)
          const listed = yield* owner.call("GET", `${manage}/api-keys`)
          assert.notInclude(listed.text, key)
          const row = listed.json.data.find((it: { id: string }) => it.id === made.json.id)
          assert.strictEqual(row.preview, preview)
          const revoked = yield* owner.call("DELETE", `${manage}/api-keys/${made.json.id}`)
          assert.deepStrictEqual([revoked.status, revoked.text], [204, ""])
          assert.strictEqual((yield* callWith(key)("GET", `${manage}/wallet`)).json.code, 1003)
        }
        const plain = yield* owner.call("POST", `${manage}/api-keys`, { name: "b" })
        assert.deepInclude(plain.json, { scopes: ["inference"], expires_at: null })
        const one = `${manage}/api-keys/${plain.json.id}`
        const other = yield* makeUser()
        const foreign = yield* other.call("DELETE", one)
        assert.strictEqual(foreign.status, 404)
        assertMembers(yield* owner.call("POST", `${one}/rotate`), 200, [...keyDetails, "key"])
      })
    )

    it.effect(
      "lets another key or the operator PATCH a key; GET adds what counts against its limit",
      () =>
        Effect.gen(function* () {
          const owner = yield* makeUser()
          const { id, key } = (yield* owner.call("POST", `${manage}/api-keys`, {
            name: "a",
            scopes: ["inference", "manage"]
          })).json
          const one = `${manage}/api-keys/${id}`
          const unlimited = yield* owner.call("GET", one)
          assertMembers(unlimited, 200, keyDetails)
          assert.deepInclude(unlimited.json, noSpendLimit)
          const change = {
            name: "b",
            spend_limit: "50.00",
            reset: "monthly",
            allowed_models: ["text-to-image-max"],
            rate_limit_per_minute: 60,
            concurrent_tasks: 2,
            expires_at: "2099-01-01T00:00:00.000Z"
          }
          const limited = yield* owner.call("PATCH", one, change)
          assertMembers(limited, 200, keyDetails)
          assert.deepInclude(limited.json, change)
          assert.strictEqual((yield* callWith(key)("POST", image, hang)).status, 202)
          const shownKey = yield* owner.call("GET", one)
          assertMembers(shownKey, 200, keyDetails)
          const counted = { spent: "0.00", held: "7.50", remaining: "42.50" }
          const resets_at = "1970-02-01T00:00:00.000Z"
          assert.deepInclude(shownKey.json, { ...change, ...counted, resets_at })
          const listed = (yield* owner.call("GET", `${manage}/api-keys`)).json.data
          assert.deepInclude(listed, shownKey.json)
          for (const reset of ["daily", "weekly", "never"]) {
            const { json } = yield* operator("PATCH", `${manage}/api-keys/${id}`, { reset })
            assert.deepInclude(json, { ...change, reset })
          }
          const more = yield* operator("PATCH", `${manage}/api-keys/${id}`, {
            spend_limit: "60.00"
          })
          const never = { reset: "never", resets_at: null }
          assert.deepInclude(more.json, { ...change, spend_limit: "60.00", ...never })
          const removed = yield* operator("PATCH", `${manage}/api-keys/${id}`, {
            spend_limit: null
          })
          assert.deepInclude(removed.json, noSpendLimit)
          const own = yield* callWith(key)("PATCH", one, { spend_limit: null })
          assert.deepStrictEqual([own.status, own.json.code], [403, 1004])
        })
    )

    it.effect("shows an endpoint's secret on create and rotate, and two ids after a test", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const at = `${manage}/webhook-endpoints`
        const made = yield* owner.call("POST", at, hook)
        assertMembers(made, 201, shown)
        assert.match(made.json.id, /^whe_/u)
        assert.deepInclude(made.json, { ...hook, description: null, enabled: true })
        const one = `${at}/${made.json.id}`
        assertMembers(yield* owner.call("GET", one), 200, masked)
        const changed = yield* owner.call("PATCH", one, { description: "d", enabled: false })
        assertMembers(changed, 200, masked)
        assert.deepInclude(changed.json, { ...hook, description: "d", enabled: false })
        yield* owner.call("PATCH", one, { enabled: true })
        const rotated = yield* owner.call("POST", `${one}/rotate`)
        assertMembers(rotated, 200, shown)
        assert.notStrictEqual(rotated.json.secret, made.json.secret)
        const tested = yield* owner.call("POST", `${one}/test`)
        assertMembers(tested, 202, ["event_id", "delivery_id"])
        assert.match(tested.json.event_id, /^evt_test_/u)
        assert.match(tested.json.delivery_id, /^whd_/u)
        const listed = yield* owner.call("GET", at)
        assert.deepStrictEqual(listed.json.data.map(Object.keys), [masked])
        const other = yield* makeUser()
        for (const [method, path, body] of [
          ["GET", one, undefined],
          ["PATCH", one, { enabled: false }],
          ["DELETE", one, undefined],
          ["POST", `${one}/rotate`, undefined],
          ["POST", `${one}/test`, undefined]
        ] as const) {
          const refused = yield* other.call(method, path, body)
          assert.deepStrictEqual([refused.status, refused.json.code], [404, 2005], path)
        }
        assert.strictEqual((yield* owner.call("DELETE", one)).status, 204)
        assert.strictEqual((yield* owner.call("GET", one)).status, 404)
      })
    )

    it.effect("shows the wallet and its ledger, and changes the threshold by PATCH", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        assertMembers(yield* owner.call("GET", `${manage}/wallet`), 200, wallet)
        const changed = yield* owner.call("PATCH", `${manage}/wallet`, {
          trigger_threshold: "5.00"
        })
        assertMembers(changed, 200, wallet)
        assert.strictEqual(changed.json.trigger_threshold, "5.00")
        yield* owner.call("POST", image, { prompt: "[[sim:hang]]" })
        const held = yield* owner.call("GET", `${manage}/wallet`)
        assert.deepInclude(held.json, {
          available_balance: "992.50",
          settled_balance: "1000.00",
          held_balance: "7.50"
        })
        const entries = yield* owner.call("GET", `${manage}/wallet/entries`)
        assert.deepStrictEqual(
          entries.json.data.map((it: { kind: string; amount: string }) => [it.kind, it.amount]),
          [
            ["hold", "7.50"],
            ["top_up", "1000.00"]
          ]
        )
      })
    )

    it.effect("lists newest first, 1 to 100 a page, 20 by default, until next_cursor is null", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        for (let n = 0; n < 24; n += 1) {
          yield* owner.call("POST", `${manage}/api-keys`, { name: `${n}` })
          yield* TestClock.adjust("1 millis")
        }
        const read = (path: string) => owner.call("GET", `${manage}${path}`)
        const first = yield* read("/api-keys")
        assert.deepStrictEqual(Object.keys(first.json), ["data", "next_cursor"])
        assert.deepStrictEqual(
          first.json.data.map((it: { name: string }) => it.name),
          Array.from({ length: 20 }, (_, n) => `${23 - n}`)
        )
        const last = yield* read(`/api-keys?cursor=${first.json.next_cursor}`)
        assert.strictEqual(last.json.data.length, 5)
        assert.isNull(last.json.next_cursor)
        for (const list of ["tasks", "api-keys", "webhook-endpoints", "webhook-deliveries"]) {
          assert.strictEqual((yield* read(`/${list}?limit=1`)).status, 200)
          assert.strictEqual((yield* read(`/${list}?limit=100`)).status, 200)
          assert.strictEqual((yield* read(`/${list}?limit=0`)).status, 400)
          assert.strictEqual((yield* read(`/${list}?limit=101`)).status, 400)
        }
      })
    )

    it.effect("lists the whole catalog of models page by page", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const readBy = Effect.fnUntraced(function* (limit: number) {
          const seen: Array<{ readonly type: string }> = []
          let cursor = ""
          do {
            const page = yield* owner.call("GET", `${manage}/models?limit=${limit}${cursor}`)
            seen.push(...page.json.data)
            cursor = page.json.next_cursor === null ? "" : `&cursor=${page.json.next_cursor}`
          } while (cursor !== "")
          return seen
        })
        const whole = yield* readBy(100)
        const ofType = (type: string) => whole.filter((it) => it.type === type)
        assert.strictEqual(ofType("media").length, 9)
        const periods = withBuiltIn().tokenModels.flatMap(pricePeriods)
        assert.strictEqual(ofType("token").length, periods.length)
        assert.strictEqual(whole.length, 9 + periods.length)
        const row = ["type", "vendor", "model", "path", "sandbox"]
        const days = ["valid_from", "valid_until", "deprecation", "sunset", "replacement", "source"]
        const media = [...row, "result", "price", ...days, "body_schema", "media"]
        assert.hasAllKeys(ofType("media")[0], media)
        const tokens = ["input_tokens_max", "output_tokens_max", "body_schema"]
        assert.hasAllKeys(ofType("token")[0], [...row, "price", ...days, ...tokens])
        assert.deepStrictEqual(yield* readBy(14), whole)
      })
    )

    it.effect("accepts creates after an operator fault that a prompt requested", () =>
      Effect.gen(function* () {
        const owner = yield* makeUser()
        const made = yield* owner.call("POST", image, { prompt: "[[sim:operator]]" })
        const task = `${image}/${made.json.task_info.id}`
        const { json } = yield* eventually(
          owner.call("GET", task),
          (answer) => answer.json.task_info.status === "failed"
        )
        assert.strictEqual(json.task_info.error.code, 4008)
        assert.strictEqual((yield* owner.call("POST", image, { prompt: "x" })).status, 202)
      })
    )
  })

  liveIt(
    "uses SERVICE_NAME in the names of headers and in the User-Agent",
    async () => {
      await using receiver = await startReceiver()
      const env = { ...receiver.env, SERVICE_NAME: "Acme" }
      await using gateway = await GatewayProcess.start({ env })
      const events = ["task.created"]
      await gateway.call("POST", `${manage}/webhook-endpoints`, { url: receiver.url, events })
      const made = await gateway.call("POST", image, { prompt: "x" })
      const task = `${image}/${made.json.task_info.id}`
      const streamed = await gateway.call("GET", task, undefined, { accept: "text/event-stream" })
      for (const answer of [made, await gateway.call("GET", task), streamed]) {
        assert.strictEqual(answer.headers.get("x-acme-cost"), "7.50")
        assert.strictEqual(answer.headers.get("x-acme-sandbox"), "true")
        assert.isFalse([...answer.headers.keys()].some((name) => name.startsWith("x-service")))
      }
      assert.strictEqual(made.headers.get("x-acme-balance"), "992.50")
      const { headers } = await until(async () => receiver.received[0])
      assert.strictEqual(headers["user-agent"], "Acme-Webhook/1.0")
      for (const name of ["id", "timestamp", "signature"]) {
        assert.isString(headers[`x-acme-webhook-${name}`])
      }
    },
    180_000
  )
})
