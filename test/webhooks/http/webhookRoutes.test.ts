import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { AttemptOutcome } from "../../../src/domain/Webhook.ts"
import { deliveryHeaders } from "../../../src/webhooks/Signature.ts"
import { verifyWebhook } from "../../../src/webhooks/verifyWebhook.ts"
import { mockOutcome, WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../../src/webhooks/WebhookSender.ts"
import { queueDeliveries } from "../../support/deliveries.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const deliveries = "/manage/v1/webhook-deliveries"
const hook = { url: "https://127.0.0.1/hook", events: ["task.succeeded"] }

const makeEndpoint = Effect.fnUntraced(function* (user: User, fields: object = {}) {
  const answer = yield* user.call("POST", endpoints, { ...hook, ...fields })
  assert.strictEqual(answer.status, 201, answer.text)
  return answer.json as { readonly id: string; readonly secret: string }
})

const sendTest = Effect.fnUntraced(function* (user: User, id: string) {
  const answer = yield* user.call("POST", `${endpoints}/${id}/test`)
  assert.strictEqual(answer.status, 202, answer.text)
  return answer.json as { readonly event_id: string; readonly delivery_id: string }
})

/** The delivery, once it has this status. */
const settled = (user: User, id: string, status: string) =>
  Effect.map(
    eventually(user.call("GET", `${deliveries}/${id}`), (answer) => answer.json.status === status),
    (answer) => answer.json
  )

/** Responds with the statuses in the URL, in turn, and repeats the last one; without any it responds with 200. */
const byUrl = () => {
  const attempts = new Map<string, number>()
  return ({ url }: WebhookRequest): Effect.Effect<AttemptOutcome> =>
    Effect.sync(() => {
      const statuses = new URL(url).pathname.split("/").map(Number).filter(Boolean)
      const n = attempts.get(url) ?? 0
      attempts.set(url, n + 1)
      return mockOutcome(statuses[Math.min(n, statuses.length - 1)] ?? 200)
    })
}

let urls = 0

const responding = (...statuses: ReadonlyArray<number>) => ({
  url: `https://127.0.0.1/hook/${statuses.join("/")}?${(urls += 1)}`
})

/** Every attempt of a delivery. */
const sentOf = (id: string) =>
  Effect.flatMap(WebhookSenderLog, ({ sent }) =>
    Effect.map(sent, (all) =>
      all.map(({ request }) => request).filter(({ deliveryId }) => deliveryId === id)
    )
  )

const inside = (host: string) =>
  Promise.resolve(host === "inside.test" ? ["10.0.0.7", "fd00::1"] : ["1.1.1.1"])

layer(layerGateway({ webhook: byUrl(), resolve: inside }), { timeout: "60 seconds" })((it) => {
  describe("webhook endpoints", () => {
    it.effect("are at most five per user, however many are created at once", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const other = yield* makeUser()
        const all = yield* Effect.all(
          Array.from({ length: 12 }, () => user.call("POST", endpoints, hook)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(all.filter((answer) => answer.status === 201).length, 5)
        for (const refused of all.filter((answer) => answer.status !== 201)) {
          assert.deepStrictEqual([refused.status, refused.json.code], [409, 2010])
        }
        yield* makeEndpoint(other)
        const list = yield* user.call("GET", endpoints)
        const [first] = list.json.data as [{ readonly id: string }]
        yield* user.call("DELETE", `${endpoints}/${first.id}`)
        yield* makeEndpoint(user)
      })
    )

    const wrong: ReadonlyArray<readonly [string, object, number]> = [
      ["http", { url: "http://example.com/hook" }, 2011],
      ["a URL of 2049 characters", { url: `https://example.com/${"a".repeat(2029)}` }, 2011],
      ["credentials in the URL", { url: "https://user:password@example.com/" }, 2011],
      ["a private address", { url: "https://10.0.0.1/" }, 2011],
      ["a name that leads to private addresses", { url: "https://inside.test/" }, 2011],
      ["a URL with backslashes", { url: "https:\\\\example.com/" }, 2011],
      ["port 0", { url: "https://example.com:0/" }, 2011],
      ["no URL at all", { url: "hook" }, 2011],
      ["a description of 201 characters", { description: "雪".repeat(201) }, 2001],
      ["no event", { events: [] }, 2001],
      ["an unknown event", { events: ["task.processing"] }, 2001],
      ["an unknown field", { secret: "whsec_mine" }, 2001]
    ]
    it.effect("follow the rules on create and update, and a refusal changes nothing", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { id } = yield* makeEndpoint(user, { description: "雪".repeat(200) })
        const before = yield* user.call("GET", `${endpoints}/${id}`)
        for (const [what, fields, code] of wrong) {
          const created = yield* user.call("POST", endpoints, { ...hook, ...fields })
          assert.deepStrictEqual(
            [created.status, created.json.code],
            [400, code],
            `create: ${what}`
          )
          const updated = yield* user.call("PATCH", `${endpoints}/${id}`, fields)
          assert.deepStrictEqual(
            [updated.status, updated.json.code],
            [400, code],
            `update: ${what}`
          )
        }
        const url = `https://example.com/${"a".repeat(2028)}`
        assert.deepStrictEqual((yield* user.call("GET", `${endpoints}/${id}`)).json, before.json)
        const longest = yield* user.call("PATCH", `${endpoints}/${id}`, { url })
        assert.deepStrictEqual([longest.status, longest.json.url], [200, url])
      })
    )

    it.effect(
      "show their secret only on create and rotate, masked later, and it is encrypted at rest",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const user = yield* makeUser()
          const { id, secret } = yield* makeEndpoint(user)
          assert.match(secret, /^whsec_.{44}$/u)
          const shown = yield* user.call("GET", `${endpoints}/${id}`)
          assert.strictEqual(shown.json.secret_preview, `whsec_...${secret.slice(-4)}`)
          assert.notInclude(shown.text, secret)
          const rotated = yield* user.call("POST", `${endpoints}/${id}/rotate`)
          assert.strictEqual(rotated.status, 200)
          assert.notStrictEqual(rotated.json.secret, secret)
          const rows = yield* sql`
          SELECT encode(secret, 'escape') AS a, encode(previous_secret, 'escape') AS b
          FROM webhook_endpoints`
          assert.notInclude(JSON.stringify(rows), secret.slice(6))
          assert.notInclude(JSON.stringify(rows), rotated.json.secret.slice(6))
        })
    )

    it.effect("disabled between retries skip pending deliveries, which can be redelivered", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { id } = yield* makeEndpoint(user, responding(500, 200))
        const { delivery_id } = yield* sendTest(user, id)
        yield* eventually(
          user.call("GET", `${deliveries}/${delivery_id}`),
          (answer) => answer.json.attempts[0]?.failure === "http_status"
        )
        yield* user.call("PATCH", `${endpoints}/${id}`, { enabled: false })
        yield* settled(user, delivery_id, "skipped")
        yield* advance("20 seconds")
        assert.strictEqual((yield* sentOf(delivery_id)).length, 1)
        const refused = yield* user.call("POST", `${endpoints}/${id}/test`)
        assert.deepStrictEqual([refused.status, refused.json.code], [409, 2010])
        const again = yield* user.call("POST", `${deliveries}/${delivery_id}/redeliver`)
        assert.strictEqual(again.status, 202)
        const shown = yield* settled(user, delivery_id, "succeeded")
        assert.strictEqual(shown.attempt_count, 2)
        assert.strictEqual((yield* sentOf(delivery_id)).length, 2)
        yield* user.call("PATCH", `${endpoints}/${id}`, { enabled: true })
        yield* settled(user, (yield* sendTest(user, id)).delivery_id, "succeeded")
      })
    )

    it.effect(
      "that are disabled keep a redelivery waiting for its retry while another field is changed",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const { id } = yield* makeEndpoint(user, responding(500, 500, 200))
          const { delivery_id } = yield* sendTest(user, id)
          const one = `${deliveries}/${delivery_id}`
          const failures = (count: number) =>
            eventually(
              user.call("GET", one),
              ({ json }) => json.attempts[count - 1]?.failure === "http_status"
            )
          yield* failures(1)
          yield* user.call("PATCH", `${endpoints}/${id}`, { enabled: false })
          yield* user.call("POST", `${one}/redeliver`)
          yield* failures(2)
          const changed = yield* user.call("PATCH", `${endpoints}/${id}`, { description: "mended" })
          assert.deepStrictEqual(
            [changed.json.enabled, changed.json.description],
            [false, "mended"]
          )
          assert.strictEqual((yield* user.call("GET", one)).json.status, "pending")
          yield* advance("20 seconds")
          yield* settled(user, delivery_id, "succeeded")
        })
    )

    it.effect(
      "redeliver nothing whose event has been dropped with its day, and it takes no place",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const { id } = yield* makeEndpoint(user, responding(500))
          const { delivery_id, event_id } = yield* sendTest(user, id)
          yield* eventually(
            user.call("GET", `${deliveries}/${delivery_id}`),
            ({ json }) => json.attempts[0]?.failure === "http_status"
          )
          yield* user.call("PATCH", `${endpoints}/${id}`, { enabled: false })
          yield* settled(user, delivery_id, "skipped")
          const sql = yield* SqlClient.SqlClient
          yield* sql`DELETE FROM events WHERE id = ${event_id}`
          const again = yield* user.call("POST", `${deliveries}/${delivery_id}/redeliver`)
          assert.deepStrictEqual([again.status, again.json.code], [404, 2005])
          const since = "1970-01-01T00:00:00Z"
          const recovered = yield* user.call("POST", `${endpoints}/${id}/recover`, { since })
          assert.deepStrictEqual(recovered.json, { recovered: 0, has_more: false })
          const all = yield* user.call("POST", `${deliveries}/redeliver`, { filter: {} })
          assert.deepStrictEqual(all.json, { redelivered: 0, next_cursor: null })
          assert.isEmpty(yield* sql`SELECT FROM delivery_queue WHERE endpoint_id = ${id}`)
          yield* settled(user, delivery_id, "skipped")
        })
    )

    it.effect(
      "deleted between retries skip deliveries permanently, and the log still shows them",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const { id } = yield* makeEndpoint(user, responding(500))
          const { delivery_id } = yield* sendTest(user, id)
          yield* eventually(
            user.call("GET", `${deliveries}/${delivery_id}`),
            (answer) => answer.json.attempts[0]?.failure === "http_status"
          )
          assert.strictEqual((yield* user.call("DELETE", `${endpoints}/${id}`)).status, 204)
          const shown = yield* settled(user, delivery_id, "skipped")
          assert.strictEqual(shown.endpoint_id, id)
          const again = yield* user.call("POST", `${deliveries}/${delivery_id}/redeliver`)
          assert.deepStrictEqual([again.status, again.json.code], [409, 2010])
          assert.strictEqual((yield* user.call("GET", `${endpoints}/${id}`)).status, 404)
          yield* advance("20 seconds")
          assert.strictEqual((yield* sentOf(delivery_id)).length, 1)
        })
    )

    it.effect("rotated between retries sign each later attempt with both secrets", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { id, secret } = yield* makeEndpoint(user, responding(500))
        const sentSoFar = sentOf((yield* sendTest(user, id)).delivery_id)
        yield* eventually(sentSoFar, (sent) => sent.length === 1)
        const rotated: string = (yield* user.call("POST", `${endpoints}/${id}/rotate`)).json.secret
        yield* advance("16 seconds")
        yield* advance("61 seconds", "5 seconds")
        const sent = yield* eventually(sentSoFar, (all) => all.length === 3)
        const verifies = Effect.fnUntraced(function* (n: number, known: string) {
          const request = sent[n]!
          const headers = deliveryHeaders(
            "Service",
            request,
            request.secret,
            request.previousSecret
          )
          const now = new Date(request.timestampSeconds * 1000)
          return yield* Effect.promise(() =>
            verifyWebhook({ headers, body: request.body, secret: known, now })
          )
        })
        assert.isTrue((yield* verifies(0, secret)).valid)
        assert.isFalse((yield* verifies(0, rotated)).valid)
        for (const n of [1, 2]) {
          assert.isTrue((yield* verifies(n, secret)).valid)
          assert.isTrue((yield* verifies(n, rotated)).valid)
        }
      })
    )

    it.effect("send a synthetic task.succeeded as test event, whatever the subscription", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { id } = yield* makeEndpoint(user, { events: ["balance.low"] })
        const { delivery_id, event_id } = yield* sendTest(user, id)
        assert.match(event_id, /^evt_test_/u)
        yield* settled(user, delivery_id, "succeeded")
        const [sent] = yield* sentOf(delivery_id)
        const event = JSON.parse(new TextDecoder().decode(sent?.body))
        assert.deepStrictEqual([event.id, event.type], [event_id, "task.succeeded"])
        assert.strictEqual(event.data.payload.task_info.status, "completed")
      })
    )
  })

  describe("the delivery log", () => {
    it.effect("lists only the user's own deliveries, newest first, by filters and cursor", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const other = yield* makeUser()
        const { id: a } = yield* makeEndpoint(user)
        const { id: b } = yield* makeEndpoint(user)
        const sent: Array<string> = []
        for (const id of [a, b, a, a, b]) {
          sent.unshift((yield* sendTest(user, id)).delivery_id)
          yield* advance("10 millis", "10 millis")
        }
        for (const id of sent) yield* settled(user, id, "succeeded")
        const read = (query: string) =>
          Effect.map(user.call("GET", `${deliveries}?${query}`), (answer) => {
            assert.strictEqual(answer.status, 200, answer.text)
            return answer.json as { data: Array<{ id: string }>; next_cursor: string | null }
          })
        const ids = (page: { data: Array<{ id: string }> }) => page.data.map((it) => it.id)
        assert.deepStrictEqual(ids(yield* read("")), sent)
        const first = yield* read("limit=2")
        const second = yield* read(`limit=2&cursor=${first.next_cursor}`)
        const third = yield* read(`limit=2&cursor=${second.next_cursor}`)
        assert.deepStrictEqual([...ids(first), ...ids(second), ...ids(third)], sent)
        assert.strictEqual(third.next_cursor, null)
        assert.strictEqual(ids(yield* read(`endpoint_id=${a}`)).length, 3)
        assert.strictEqual(ids(yield* read("status=failed")).length, 0)
        assert.strictEqual(ids(yield* read("type=task.succeeded&status=succeeded")).length, 5)
        const wrong = yield* user.call("GET", `${deliveries}?status=lost&limit=0`)
        assert.deepStrictEqual([wrong.status, wrong.json.errors.length], [400, 2])
        assert.deepStrictEqual(ids((yield* other.call("GET", deliveries)).json), [])
        for (const id of [sent[0], "whd_x", `whd_${"f".repeat(32)}`]) {
          const foreign = yield* other.call("GET", `${deliveries}/${id}`)
          assert.deepStrictEqual([foreign.status, foreign.json.code], [404, 2005])
          const redelivered = yield* other.call("POST", `${deliveries}/${id}/redeliver`)
          assert.strictEqual(redelivered.status, 404)
        }
      })
    )

    it.effect(
      "redelivers a succeeded delivery with the same id and bytes and a new signature",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const { id } = yield* makeEndpoint(user)
          const { delivery_id } = yield* sendTest(user, id)
          yield* settled(user, delivery_id, "succeeded")
          yield* advance("100 seconds", "20 seconds")
          const again = yield* user.call("POST", `${deliveries}/${delivery_id}/redeliver`)
          assert.deepStrictEqual([again.status, again.json.id], [202, delivery_id])
          const [first, second] = yield* eventually(
            sentOf(delivery_id),
            (sent) => sent.length === 2
          )
          assert.deepStrictEqual(second?.body, first?.body)
          assert.strictEqual(second!.timestampSeconds - first!.timestampSeconds, 100)
          const shown = yield* settled(user, delivery_id, "succeeded")
          assert.deepStrictEqual(
            shown.attempts.map((it: { readonly seq: number }) => it.seq),
            [1, 2]
          )
        })
    )
  })
})

describe("webhook endpoints over time", () => {
  it.effect("show for seven days how their latest attempts ended", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const { id } = yield* makeEndpoint(user, responding(500, 500, 200))
      const health = Effect.map(user.call("GET", `${endpoints}/${id}`), ({ json }) => json.health)
      const unknown = {
        status: "unknown",
        failed_attempts: 0,
        failing_since: null,
        last_attempt: null
      }
      assert.deepStrictEqual(yield* health, unknown)
      const first = yield* sendTest(user, id)
      const failed = (count: number, at: string) => ({
        status: "failing",
        failed_attempts: count,
        failing_since: "1970-01-01T00:00:00.000Z",
        last_attempt: { started_at: at, status: 500, failure: "http_status" }
      })
      const attempts = (count: number) =>
        eventually(
          user.call("GET", `${deliveries}/${first.delivery_id}`),
          ({ json }) => json.attempt_count === count
        )
      yield* attempts(1)
      assert.deepStrictEqual(yield* health, failed(1, "1970-01-01T00:00:00.000Z"))
      yield* advance("15 seconds")
      yield* attempts(2)
      assert.deepStrictEqual(yield* health, failed(2, "1970-01-01T00:00:15.000Z"))
      const { json } = yield* user.call("GET", endpoints)
      assert.deepStrictEqual(json.data[0].health, yield* health)
      // Another user's endpoint is not affected
      const other = yield* makeUser()
      yield* makeEndpoint(other)
      assert.deepStrictEqual((yield* other.call("GET", endpoints)).json.data[0].health, unknown)
      yield* advance("1 minute")
      yield* settled(user, first.delivery_id, "succeeded")
      const good = { started_at: "1970-01-01T00:01:15.000Z", status: 200, failure: null }
      const healthy = {
        status: "healthy",
        failed_attempts: 0,
        failing_since: null,
        last_attempt: good
      }
      assert.deepStrictEqual(yield* health, healthy)
      const changed = yield* user.call("PATCH", `${endpoints}/${id}`, { description: "x" })
      assert.deepStrictEqual(changed.json.health, healthy)
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE delivery_attempts SET started_at = started_at - interval '7 days 2 minutes'`
      assert.deepStrictEqual(yield* health, unknown)
    }).pipe(Effect.provide(layerGateway({ webhook: byUrl() })))
  )

  it.effect(
    "sign with both secrets for 24 hours after a rotation, then only with the new one",
    () =>
      Effect.gen(function* () {
        const log = yield* WebhookSenderLog
        const user = yield* makeUser()
        const { id, secret } = yield* makeEndpoint(user)
        const oldUntil = Effect.map(
          user.call("GET", `${endpoints}/${id}`),
          ({ json }) => json.old_secret_expires_at
        )
        assert.isNull(yield* oldUntil)
        const rotated = yield* user.call("POST", `${endpoints}/${id}/rotate`)
        assert.strictEqual(rotated.json.old_secret_expires_at, "1970-01-02T00:00:00.000Z")
        assert.strictEqual(yield* oldUntil, rotated.json.old_secret_expires_at)
        const send = Effect.gen(function* () {
          const { delivery_id } = yield* sendTest(user, id)
          yield* settled(user, delivery_id, "succeeded")
          const [last] = (yield* log.sent).slice(-1)
          return [last?.request.secret, last?.request.previousSecret]
        })
        assert.deepStrictEqual(yield* send, [rotated.json.secret, secret])
        const sql = yield* SqlClient.SqlClient
        const [until] = yield* sql`
        SELECT extract(epoch FROM previous_secret_until)::float8 AS seconds FROM webhook_endpoints`
        assert.strictEqual(until?.["seconds"], 24 * 3600)
        // The heartbeats of a day take too long, so the day is shortened
        yield* sql`UPDATE webhook_endpoints SET previous_secret_until = timestamptz 'epoch' + interval '5 s'`
        yield* advance("4900 millis", "4900 millis")
        assert.deepStrictEqual(yield* send, [rotated.json.secret, secret])
        yield* advance("100 millis", "100 millis")
        assert.deepStrictEqual(yield* send, [rotated.json.secret, undefined])
        assert.isNull(yield* oldUntil)
      }).pipe(Effect.provide(layerGateway()))
  )

  it.effect("disabled during an attempt do not retry its failure", () =>
    Effect.gen(function* () {
      const log = yield* WebhookSenderLog
      const user = yield* makeUser()
      const { id } = yield* makeEndpoint(user)
      const { delivery_id } = yield* sendTest(user, id)
      yield* eventually(log.sent, (sent) => sent.length === 1)
      yield* user.call("PATCH", `${endpoints}/${id}`, { enabled: false })
      yield* advance("3 seconds")
      yield* settled(user, delivery_id, "skipped")
      yield* advance("30 seconds")
      assert.strictEqual((yield* log.sent).length, 1)
      yield* user.call("POST", `${deliveries}/${delivery_id}/redeliver`)
      yield* eventually(log.sent, (sent) => sent.length === 2)
      yield* user.call("PATCH", `${endpoints}/${id}`, { enabled: false })
      yield* advance("3 seconds")
      yield* settled(user, delivery_id, "skipped")
      yield* advance("30 seconds")
      assert.strictEqual((yield* log.sent).length, 2, "the redelivery is not retried either")
    }).pipe(
      Effect.provide(
        layerGateway({ webhook: () => Effect.delay(Effect.succeed(mockOutcome(500)), "2 seconds") })
      )
    )
  )

  it.effect("deleted during an attempt send neither a retry nor waiting deliveries", () =>
    Effect.gen(function* () {
      const log = yield* WebhookSenderLog
      const user = yield* makeUser()
      const { id } = yield* makeEndpoint(user)
      const { delivery_id } = yield* sendTest(user, id)
      yield* eventually(log.sent, (sent) => sent.length === 1)
      yield* advance("29 seconds", "5 seconds")
      const waiting = yield* queueDeliveries(id, 3, new Date(60_000))
      assert.strictEqual((yield* user.call("DELETE", `${endpoints}/${id}`)).status, 204)
      for (const one of waiting) yield* settled(user, one, "skipped")
      assert.strictEqual(
        (yield* user.call("GET", `${deliveries}/${delivery_id}`)).json.status,
        "delivering"
      )
      yield* advance("2 seconds")
      const shown = yield* settled(user, delivery_id, "skipped")
      assert.deepStrictEqual(
        shown.attempts.map((it: { readonly status: number }) => it.status),
        [500],
        "its outcome is recorded"
      )
      yield* advance("90 seconds", "5 seconds")
      assert.strictEqual((yield* log.sent).length, 1)
    }).pipe(
      Effect.provide(
        layerGateway({
          webhook: () => Effect.delay(Effect.succeed(mockOutcome(500)), "30 seconds")
        })
      )
    )
  )

  it.effect(
    "log every attempt: due, started, ended, lateness, address, status, class, response",
    () =>
      Effect.gen(function* () {
        const log = yield* WebhookSenderLog
        const user = yield* makeUser()
        const { id } = yield* makeEndpoint(user, responding(503, 200))
        const { delivery_id } = yield* sendTest(user, id)
        yield* eventually(log.sent, (sent) => sent.length === 1)
        yield* advance("16 seconds", "500 millis")
        const shown = yield* settled(user, delivery_id, "succeeded")
        assert.strictEqual(shown.attempts.length, 2)
        const [sent] = yield* log.sent
        assert.strictEqual(shown.body, new TextDecoder().decode(sent?.request.body))
        const [failed, succeeded] = shown.attempts
        assert.deepStrictEqual(
          { ...failed },
          {
            seq: 1,
            due_at: "1970-01-01T00:00:00.000Z",
            started_at: "1970-01-01T00:00:00.000Z",
            ended_at: "1970-01-01T00:00:00.000Z",
            lateness_ms: 0,
            remote_address: "192.0.2.1",
            status: 503,
            failure: "http_status",
            detail: "HTTP 503",
            answer: ""
          }
        )
        assert.deepStrictEqual(
          [succeeded.seq, succeeded.due_at, succeeded.failure, succeeded.status],
          [2, "1970-01-01T00:00:15.000Z", null, 200]
        )
      }).pipe(Effect.provide(layerGateway({ webhook: byUrl() })))
  )

  it.effect("redeliver failed and skipped deliveries since a time on recover, within bounds", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const user = yield* makeUser()
      const { id } = yield* makeEndpoint(user)
      const { delivery_id } = yield* sendTest(user, id)
      yield* settled(user, delivery_id, "succeeded")
      yield* advance("1 second")
      yield* sql`
        INSERT INTO deliveries
          (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status, updated_at)
        SELECT time_sorted_id('whd_', t), t, d.user_id, d.endpoint_id, d.event_id, d.event_created_at,
          d.event_type, CASE n % 2 WHEN 0 THEN 'failed' ELSE 'skipped' END, t
        FROM deliveries d, generate_series(1, 1003) n,
          LATERAL (SELECT d.created_at + interval '1 millisecond' * n AS t) at`
      const since = "1970-01-01T00:00:00.003Z"
      const first = yield* user.call("POST", `${endpoints}/${id}/recover`, { since })
      assert.deepStrictEqual([first.status, first.json], [202, { recovered: 1000, has_more: true }])
      const second = yield* user.call("POST", `${endpoints}/${id}/recover`, { since })
      assert.deepStrictEqual(second.json, { recovered: 1, has_more: false })
      const left = yield* user.call("GET", `${deliveries}?status=failed`)
      assert.strictEqual(left.json.data.length, 1)
      const later = yield* user.call("POST", `${endpoints}/${id}/recover`, {
        since: "1970-01-02T00:00:00Z"
      })
      assert.deepStrictEqual([later.status, later.json.errors[0].pointer], [400, "#/since"])
    }).pipe(Effect.provide(layerGateway()))
  )
})

describe("debug-signature", () => {
  it.effect("returns what is wrong with a received request", () =>
    Effect.gen(function* () {
      const log = yield* WebhookSenderLog
      const user = yield* makeUser()
      const { id, secret } = yield* makeEndpoint(user)
      const { id: otherId } = yield* makeEndpoint(user)
      yield* settled(user, (yield* sendTest(user, id)).delivery_id, "succeeded")
      const [sent] = yield* log.sent
      const request = sent!.request
      const headers = deliveryHeaders("Service", request, secret)
      const body = new TextDecoder().decode(request.body)
      const codes = (received: object, endpoint = id) =>
        Effect.map(
          user.call("POST", `${endpoints}/${endpoint}/debug-signature`, {
            headers,
            body,
            ...received
          }),
          (answer) => {
            assert.strictEqual(answer.status, 200, answer.text)
            assert.strictEqual(answer.json.valid, answer.json.findings.length === 0)
            return answer.json.findings.map((it: { readonly code: string }) => it.code)
          }
        )
      const without = (name: string) =>
        Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))
      const name = "X-Service-Webhook-Signature"
      const signature = headers[name] ?? ""
      assert.deepStrictEqual(yield* codes({}), [])
      const lower = Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value])
      assert.deepStrictEqual(yield* codes({ headers: Object.fromEntries(lower) }), [])
      assert.deepStrictEqual(
        yield* codes({ body: undefined, body_base64: Buffer.from(body).toString("base64") }),
        []
      )
      const rewritten = JSON.stringify(JSON.parse(body), null, 2)
      assert.deepStrictEqual(yield* codes({ body: rewritten }), ["bytes_changed"])
      assert.deepStrictEqual(yield* codes({ headers: without(name) }), ["missing_header"])
      assert.deepStrictEqual(
        yield* codes({ headers: { ...headers, [name]: `v2=${signature.slice(3)}` } }),
        ["wrong_prefix"]
      )
      assert.deepStrictEqual(
        yield* codes({ headers: { ...headers, [name]: `v1=${"0".repeat(64)}` } }),
        ["signature_mismatch"]
      )
      assert.deepStrictEqual(yield* codes({ secret: "whsec_other" }), ["wrong_secret"])
      assert.deepStrictEqual(yield* codes({}, otherId), ["other_endpoint", "signature_mismatch"])
      const unknown = deliveryHeaders("Service", { ...request, deliveryId: "whd_unknown" }, secret)
      assert.deepStrictEqual(yield* codes({ headers: unknown }), ["unknown_delivery"])
      yield* TestClock.adjust("300 seconds")
      assert.deepStrictEqual(yield* codes({}), [])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* codes({}), ["skew"])
      assert.deepStrictEqual(yield* codes({ received_at: "1970-01-01T00:00:10Z" }), [])
      yield* user.call("POST", `${endpoints}/${id}/rotate`)
      const received_at = "1970-01-01T00:00:10Z"
      assert.deepStrictEqual(yield* codes({ received_at }), ["old_secret"])
      const text = (yield* user.call("POST", `${endpoints}/${id}/debug-signature`, {
        headers,
        body
      })).text
      assert.notInclude(text, secret, "no secret is shown")
    }).pipe(Effect.provide(layerGateway()))
  )
})
