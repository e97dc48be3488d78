import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../../src/webhooks/WebhookSender.ts"
import { eventOf, sentTo } from "../../support/deliveries.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const pathOf = (model: string) => `/vendors/alibaba/v1/${model}/generation`

const makeEndpoint = Effect.fnUntraced(function* (user: User, url: string, fields: object) {
  const made = yield* user.call("POST", endpoints, { url, ...fields })
  assert.strictEqual(made.status, 201, made.text)
  return made.json
})

/** docs/reference/webhooks.md#filters */
layer(layerGateway({ database: stores.postgres }))("filters of endpoints", (it) => {
  it.effect(
    "pass the events of tasks with the model and all pairs, and all events without a task",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const events = ["task.created", "task.succeeded", "balance.low"]
        const filters = {
          model: { models: ["text-to-image-max"] },
          shop: { metadata: { shop: "a" } },
          both: { models: ["text-to-image-max", "other"], metadata: { shop: "a", order: "1" } },
          none: { models: ["image-edit"] },
          empty: { metadata: {} }
        }
        const urlOf = (name: string) => `https://127.0.0.1/filters/${name}`
        for (const [name, filter] of Object.entries(filters)) {
          const made = yield* makeEndpoint(user, urlOf(name), { events, filter })
          assert.deepStrictEqual(made.filter, filter)
        }
        for (const metadata of [{ shop: "a", order: "1", more: "x" }, { shop: "b" }, undefined]) {
          const created = yield* user.call("POST", pathOf("text-to-image-max"), {
            prompt: "a",
            metadata
          })
          assert.strictEqual(created.status, 202, created.text)
        }
        yield* user.call("PATCH", "/manage/v1/wallet", { trigger_threshold: "5000.00" })
        yield* advance("10 seconds")
        const counts = Effect.forEach(Object.keys(filters), (name) =>
          Effect.map(sentTo(urlOf(name)), (sent) => {
            const types = sent.map((request) => eventOf(request).type)
            return ["task.created", "task.succeeded"].map(
              (type) => types.filter((it) => it === type).length
            )
          })
        )
        const expected = [3, 3, 1, 1, 1, 1, 0, 0, 3, 3]
        yield* eventually(counts, (all) => all.flat().every((count, n) => count >= expected[n]!))
        assert.deepStrictEqual(yield* counts, [
          [3, 3],
          [1, 1],
          [1, 1],
          [0, 0],
          [3, 3]
        ])
        const alerts = Effect.forEach(Object.keys(filters), (name) =>
          Effect.map(
            sentTo(urlOf(name)),
            (sent) => sent.filter((request) => eventOf(request).type === "balance.low").length
          )
        )
        yield* eventually(alerts, (all) => all.every((count) => count > 0))
        assert.deepStrictEqual(yield* alerts, [1, 1, 1, 1, 1])
      })
  )

  it.effect("can be set, changed and removed, and faults name them", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const made = yield* makeEndpoint(user, "https://127.0.0.1/a", { events: ["task.failed"] })
      assert.isNull(made.filter)
      const patch = (filter: unknown) => user.call("PATCH", `${endpoints}/${made.id}`, { filter })
      const filter = { models: ["m"], metadata: { a: "b" } }
      assert.deepStrictEqual((yield* patch(filter)).json.filter, filter)
      yield* user.call("PATCH", `${endpoints}/${made.id}`, { description: "d" })
      const shown = yield* user.call("GET", `${endpoints}/${made.id}`)
      assert.deepStrictEqual(shown.json.filter, filter)
      assert.isNull((yield* patch(null)).json.filter)
      const wrong: ReadonlyArray<readonly [unknown, string]> = [
        [{ models: [] }, "#/filter/models"],
        [{ models: ["a", "a"] }, "#/filter/models"],
        [{ models: Array.from({ length: 101 }, (_, n) => `m${n}`) }, "#/filter/models"],
        [{ metadata: { a: 1 } }, "#/filter/metadata/a"],
        [{ vendor: "alibaba" }, "#/filter/vendor"]
      ]
      for (const [given, pointer] of wrong) {
        const refused = yield* patch(given)
        assert.deepStrictEqual([refused.json.code, refused.json.errors[0].pointer], [2001, pointer])
      }
    })
  )
})

/** docs/reference/webhooks.md#failing-endpoints */
describe("webhook.failing", () => {
  const broken = "https://127.0.0.1/broken"
  const watching = "https://127.0.0.1/watching"
  let isBroken = true
  const webhook = ({ url }: WebhookRequest) =>
    Effect.sync(() => mockOutcome(isBroken && url === broken ? 500 : 200))

  it.effect(
    "tells the user's other endpoints once each time an endpoint has failed for a day",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        const other = yield* makeUser()
        const events = ["webhook.failing"]
        const failing = yield* makeEndpoint(user, broken, { events: ["task.created", ...events] })
        yield* makeEndpoint(user, watching, { events, filter: { models: ["none"] } })
        yield* makeEndpoint(other, "https://127.0.0.1/stranger", { events })
        const since = Effect.map(
          user.call("GET", `${endpoints}/${failing.id}`),
          ({ json }) => json.health.failing_since
        )
        const create = user.call("POST", pathOf("text-to-image-max"), { prompt: "a" })
        /** Skips a day, because the heartbeats of a whole day take too long. */
        const aDayPasses = Effect.andThen(
          sql`UPDATE webhook_endpoints SET failing_since = failing_since - interval '24 hours'`,
          advance("6 minutes", "30 seconds")
        )
        const told = (count: number) =>
          eventually(sentTo(watching), (sent) => sent.length === count)

        assert.isNull(yield* since)
        yield* create
        yield* eventually(since, (at) => at !== null)
        yield* advance("6 minutes", "30 seconds")
        assert.deepStrictEqual(yield* sentTo(watching), [])
        yield* aDayPasses
        const [first] = yield* told(1)
        const { data, id, type } = eventOf(first!)
        assert.strictEqual(type, "webhook.failing")
        assert.match(id, /^evt_/u)
        assert.deepStrictEqual(data, {
          user_id: user.id,
          payload: { endpoint_id: failing.id, url: broken, failing_since: yield* since }
        })
        yield* aDayPasses
        assert.strictEqual((yield* told(1)).length, 1, "once for this failure")

        isBroken = false
        yield* create
        yield* eventually(since, (at) => at === null)
        isBroken = true
        yield* create
        yield* eventually(since, (at) => at !== null)
        yield* aDayPasses
        yield* told(2)
        // A changed endpoint starts afresh
        yield* user.call("PATCH", `${endpoints}/${failing.id}`, { enabled: true })
        assert.isNull(yield* since)
        const own = (yield* sentTo(broken)).map((request) => eventOf(request).type)
        assert.notInclude(own, "webhook.failing")
        assert.deepStrictEqual(yield* sentTo("https://127.0.0.1/stranger"), [])
      }).pipe(Effect.provide(layerGateway({ webhook })))
  )
})
