import { assert, describe, it, layer } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { LogRetention } from "../../../src/process/retention/LogRetention.ts"
import { deliveryHeaders } from "../../../src/webhooks/Signature.ts"
import { verifyWebhook } from "../../../src/webhooks/verifyWebhook.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../../src/webhooks/WebhookSender.ts"
import { arrived, eventOf } from "../../support/deliveries.ts"
import { advance, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const secretPath = "/manage/v1/webhook-secret"
const deliveries = "/manage/v1/webhook-deliveries"
const url = "https://127.0.0.1/hook?task=1"

const create = Effect.fnUntraced(function* (user: User, fields: object, headers = {}) {
  const created = yield* user.call("POST", path, { prompt: "a", ...fields }, headers)
  assert.strictEqual(created.status, 202, created.text)
  return created.json.task_info.id as string
})

const typesOf = (requests: ReadonlyArray<WebhookRequest>) =>
  requests.map((request) => eventOf(request).type)

const verifies = (request: WebhookRequest, secret: string) =>
  Effect.map(
    Effect.promise(() =>
      verifyWebhook({
        headers: deliveryHeaders("Service", request, request.secret, request.previousSecret),
        body: request.body,
        secret,
        now: new Date(request.timestampSeconds * 1000)
      })
    ),
    ({ valid }) => valid
  )

const listed = (user: User, query = "") =>
  Effect.map(user.call("GET", `${deliveries}${query}`), ({ json }) => json.data)

/** docs/reference/webhooks.md#webhook-of-a-task */
layer(layerGateway({ database: stores.postgres }))("the webhook of a task", (it) => {
  it.effect("gets the outcome, signed by the user's webhook secret", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const none = { secret_preview: null, old_secret_expires_at: null }
      assert.deepStrictEqual((yield* user.call("GET", secretPath)).json, none)
      const rotated = yield* user.call("POST", `${secretPath}/rotate`)
      assert.strictEqual(rotated.status, 200, rotated.text)
      const { secret } = rotated.json
      assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/u)
      const shown = yield* user.call("GET", secretPath)
      assert.deepStrictEqual(shown.json, {
        secret_preview: `whsec_...${secret.slice(-4)}`,
        old_secret_expires_at: null
      })
      const id = yield* create(user, { webhook: { url } })
      yield* advance("10 seconds")
      const sent = yield* arrived(url, 1)
      assert.deepStrictEqual(typesOf(sent), ["task.succeeded"])
      assert.isTrue(yield* verifies(sent[0]!, secret))
      const [delivery] = yield* eventually(
        listed(user, `?task_id=${id}`),
        ([first]) => first?.status === "succeeded"
      )
      assert.strictEqual(delivery.webhook_url, url)
      const read = yield* user.call("GET", `${path}/${id}`)
      const { data } = eventOf(sent[0]!)
      assert.deepStrictEqual(data.payload, read.json)
      // It is not one of the user's endpoints
      const endpoints = yield* user.call("GET", "/manage/v1/webhook-endpoints")
      assert.deepStrictEqual(endpoints.json.data, [])
      const hidden = `/manage/v1/webhook-endpoints/${delivery.endpoint_id}`
      for (const [method, body] of [
        ["GET", undefined],
        ["PATCH", { enabled: false }],
        ["DELETE", undefined]
      ] as const) {
        assert.strictEqual((yield* user.call(method, hidden, body)).status, 404)
      }
      const again = yield* user.call("POST", `${deliveries}/${delivery.id}/redeliver`)
      assert.strictEqual(again.status, 202, again.text)
      const both = yield* arrived(url, 2)
      assert.strictEqual(both[1]!.deliveryId, both[0]!.deliveryId)
      assert.deepStrictEqual(both[1]!.body, both[0]!.body)
      const signature = yield* user.call("POST", `${hidden}/debug-signature`, {
        headers: deliveryHeaders("Service", sent[0]!, sent[0]!.secret),
        body: new TextDecoder().decode(sent[0]!.body),
        received_at: new Date(sent[0]!.timestampSeconds * 1000).toISOString()
      })
      assert.isTrue(signature.json.valid, signature.text)
    })
  )

  it.effect("gets the events that it names, only of its own task, and endpoints get theirs", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const own = "https://127.0.0.1/own"
      const endpoint = "https://127.0.0.1/all"
      yield* user.call("POST", "/manage/v1/webhook-endpoints", {
        url: endpoint,
        events: ["task.created", "task.succeeded"]
      })
      const events = ["task.created", "task.succeeded"]
      yield* create(user, { webhook: { url: own, events } })
      yield* create(user, {})
      yield* create(user, { webhook: { url: own, events: ["task.failed"] } })
      yield* advance("10 seconds")
      assert.sameMembers(typesOf(yield* arrived(endpoint, 6)), [...events, ...events, ...events])
      assert.sameMembers(typesOf(yield* arrived(own, 2)), events)
      // The secret was created with the first of these tasks
      const { secret_preview } = (yield* user.call("GET", secretPath)).json
      assert.match(secret_preview, /^whsec_\.\.\..{3}=$/u)
    })
  )

  it.effect("shares the limits of all task webhooks of its user at the origin", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const other = yield* makeUser()
      for (const [by, at] of [
        [user, "https://127.0.0.1/a"],
        [user, "https://127.0.0.1/b"],
        [user, "https://127.0.0.1:8443/a"],
        [other, "https://127.0.0.1/a"]
      ] as const) {
        yield* create(by, { webhook: { url: at, events: ["task.created"] } })
      }
      const of = Effect.fnUntraced(function* (by: User, at: string) {
        const rows = yield* listed(by)
        return rows.find((row: { webhook_url: string }) => row.webhook_url === at).endpoint_id
      })
      const first = yield* of(user, "https://127.0.0.1/a")
      assert.strictEqual(yield* of(user, "https://127.0.0.1/b"), first)
      assert.notStrictEqual(yield* of(user, "https://127.0.0.1:8443/a"), first)
      assert.notStrictEqual(yield* of(other, "https://127.0.0.1/a"), first)
    })
  )

  it.effect("does not count as one of the five endpoints, and is accepted beside them", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const hook = (n: number) => ({ url: `https://127.0.0.1:${9000 + n}/hook` })
      for (const n of [1, 2]) yield* create(user, { webhook: hook(n) })
      const events = ["task.failed"]
      const statuses = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (n) =>
        Effect.map(
          user.call("POST", "/manage/v1/webhook-endpoints", { ...hook(n), events }),
          ({ status }) => status
        )
      )
      assert.deepStrictEqual(statuses, [201, 201, 201, 201, 201, 409])
      yield* create(user, { webhook: hook(3) })
    })
  )

  it.effect(
    "has its faults listed with those of the body, and is 2011 if only its URL is refused",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const faults = Effect.fnUntraced(function* (body: object, query = "") {
          const { json, status } = yield* user.call("POST", `${path}${query}`, body)
          assert.strictEqual(status, 400)
          const pointers = json.errors.map(({ pointer }: { pointer: string }) => pointer)
          return [json.code, ...pointers]
        })
        const inside = { url: "https://10.0.0.1/hook" }
        assert.deepStrictEqual(yield* faults({ prompt: "a", webhook: inside }), [
          2011,
          "#/webhook/url"
        ])
        assert.deepStrictEqual(yield* faults({ prompt: "a", webhook: inside }, "?dry_run=true"), [
          2011,
          "#/webhook/url"
        ])
        assert.deepStrictEqual(yield* faults({ seed: -1, webhook: inside, metadata: { a: 1 } }), [
          2001,
          "#/prompt",
          "#/seed",
          "#/metadata/a"
        ])
        assert.deepStrictEqual(yield* faults({ seed: -1, webhook: inside }), [
          2001,
          "#/prompt",
          "#/seed",
          "#/webhook/url"
        ])
        const wrong: ReadonlyArray<readonly [unknown, ReadonlyArray<string>]> = [
          [null, ["#/webhook"]],
          ["https://example.com", ["#/webhook"]],
          [{}, ["#/webhook/url"]],
          [{ url, events: [] }, ["#/webhook/events"]],
          [{ url, events: ["balance.low", "task.failed"] }, ["#/webhook/events/0"]],
          [{ url, events: ["task.failed", "task.failed"] }, ["#/webhook/events"]],
          [{ url, secret: "mine" }, ["#/webhook/secret"]]
        ]
        for (const [webhook, pointers] of wrong) {
          assert.deepStrictEqual(
            yield* faults({ prompt: "a", webhook }),
            [2001, ...pointers],
            JSON.stringify(webhook)
          )
        }
        for (const address of ["http://example.com", "hook", "https://example.com/a b"]) {
          const [code] = yield* faults({ prompt: "a", webhook: { url: address } })
          assert.strictEqual(code, 2011, address)
        }
        const { data } = (yield* user.call("GET", "/manage/v1/tasks")).json
        assert.deepStrictEqual(data, [])
        assert.isNull((yield* user.call("GET", secretPath)).json.secret_preview)
      })
  )

  it.effect("can be given with each item of a batch", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const send = (...addresses: ReadonlyArray<string>) =>
        user.call("POST", "/manage/v1/task-batches", {
          tasks: addresses.map((address) => ({
            vendor: "alibaba",
            model: "text-to-image-max",
            body: { prompt: "a", webhook: { url: address, events: ["task.created"] } }
          }))
        })
      const own = "https://127.0.0.1/batch"
      const refused = yield* send(own, "https://10.0.0.1/")
      assert.strictEqual(refused.json.code, 2001, refused.text)
      assert.strictEqual(refused.json.errors[0].pointer, "#/tasks/1/body/webhook/url")
      assert.strictEqual((yield* send(own, own, "https://127.0.0.1/other")).status, 202)
      assert.deepStrictEqual(typesOf(yield* arrived(own, 2)), ["task.created", "task.created"])
    })
  )

  it.effect("is part of the idempotency hash", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const headers = { "idempotency-key": "k" }
      const at = "https://127.0.0.1/once"
      const webhook = { url: at, events: ["task.created"] }
      const first = yield* create(user, { webhook }, headers)
      assert.strictEqual(yield* create(user, { webhook }, headers), first)
      for (const other of [undefined, { url: at }, { ...webhook, url: `${at}/2` }]) {
        const refused = yield* user.call("POST", path, { prompt: "a", webhook: other }, headers)
        assert.strictEqual(refused.json.code, 2008)
      }
      yield* arrived(at, 1)
      assert.strictEqual((yield* listed(user)).length, 1)
    })
  )

  it.effect("is deleted with its user: nothing more is sent, and its URL is erased", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const user = yield* makeUser()
      const at = "https://127.0.0.1/personal"
      yield* create(user, { webhook: { url: at, events: ["task.created"] } })
      yield* create(user, { prompt: "[[sim:hang]]", webhook: { url: at } })
      yield* arrived(at, 1)
      const { status } = yield* operator("DELETE", `/manage/v1/users/${user.id}`)
      assert.isBelow(status, 300)
      yield* advance("12 minutes", "30 seconds")
      const rows = yield* sql`
            SELECT (SELECT count(*)::int FROM webhook_secrets WHERE user_id = ${user.id}) AS secrets,
              (SELECT count(*)::int FROM delivery_queue q JOIN webhook_endpoints e ON e.id = q.endpoint_id
                WHERE e.user_id = ${user.id}) AS waiting,
              (SELECT count(*)::int FROM webhook_endpoints
                WHERE user_id = ${user.id} AND (url <> '' OR deleted_at IS NULL)) AS addresses,
              (SELECT count(*)::int FROM deliveries
                WHERE user_id = ${user.id} AND webhook_url <> '') AS urls`
      assert.deepStrictEqual(rows[0], { secrets: 0, waiting: 0, addresses: 0, urls: 0 })
      assert.strictEqual((yield* arrived(at, 1)).length, 1)
    })
  )
})

describe("the webhook of a task that fails", () => {
  const refuses = () => Effect.succeed(mockOutcome(500))

  it.effect("is tried six times, with both secrets after a rotation, and can be redelivered", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const secret = (yield* user.call("POST", `${secretPath}/rotate`)).json.secret
      yield* create(user, { webhook: { url, events: ["task.created"] } })
      const [first] = yield* arrived(url, 1)
      assert.strictEqual(first!.secret, secret)
      const rotated = (yield* user.call("POST", `${secretPath}/rotate`)).json
      assert.strictEqual(rotated.old_secret_expires_at, "1970-01-02T00:00:00.000Z")
      yield* advance("16 seconds")
      const [, second] = yield* arrived(url, 2)
      assert.deepStrictEqual([second!.secret, second!.previousSecret], [rotated.secret, secret])
      // Two hours of heartbeats would take too long, so the sixth attempt is made due in a minute
      const sql = yield* SqlClient.SqlClient
      yield* eventually(listed(user), ([it]) => it.attempt_count === 2)
      yield* sql`UPDATE delivery_queue SET attempt = 5`
      yield* advance("61 seconds")
      yield* arrived(url, 3)
      const [failed] = yield* eventually(listed(user), ([it]) => it.status === "failed")
      const filter = { status: "failed", endpoint_id: failed.endpoint_id }
      const again = yield* user.call("POST", `${deliveries}/redeliver`, { filter })
      assert.strictEqual(again.json.redelivered, 1)
      yield* arrived(url, 4)
    }).pipe(Effect.provide(layerGateway({ webhook: refuses })))
  )
})

describe("the hidden endpoint that carries the limits of task webhooks", () => {
  it.effect("is removed with its log, and created again for the next webhook", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { maintain } = yield* LogRetention
      const user = yield* makeUser()
      const count = Effect.map(
        sql`SELECT count(*)::int AS n FROM webhook_endpoints WHERE of_tasks`,
        ([row]) => row?.["n"]
      )
      const webhook = { url, events: ["task.created"] }
      yield* create(user, { webhook })
      yield* arrived(url, 1)
      const own = { url: "https://127.0.0.1/own", events: ["task.failed"] }
      yield* user.call("POST", "/manage/v1/webhook-endpoints", own)
      yield* maintain
      assert.strictEqual(yield* count, 1)
      const later = DateTime.toDateUtc(DateTime.makeUnsafe(-40 * 24 * 3600 * 1000))
      yield* sql`UPDATE webhook_endpoints SET updated_at = ${later}`
      yield* maintain
      assert.strictEqual(yield* count, 1, "the log still has a delivery")
      yield* sql`DELETE FROM deliveries`
      yield* maintain
      assert.strictEqual(yield* count, 0)
      yield* create(user, { webhook })
      yield* arrived(url, 2)
      assert.strictEqual(yield* count, 1)
      const left = yield* user.call("GET", "/manage/v1/webhook-endpoints")
      assert.lengthOf(left.json.data, 1, "an endpoint of the user is not removed")
      yield* sql`UPDATE webhook_endpoints SET updated_at = ${later}`
      yield* create(user, { webhook })
      yield* arrived(url, 3)
      yield* eventually(sql`SELECT FROM delivery_queue`, (rows) => rows.length === 0)
      yield* sql`DELETE FROM deliveries`
      yield* maintain
      assert.strictEqual(yield* count, 1, "it was used")
    }).pipe(Effect.provide(layerGateway()))
  )
})
