import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { EndpointActors } from "../../../src/webhooks/EndpointActors.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { heapGrewLessThan, kept, megabyte } from "../../support/heap.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const hook = { url: "https://127.0.0.1/hook", events: ["balance.low"] }
/** Increase them with these variables for a longer measurement. */
const manyEndpoints = Number(process.env["MEMORY_ENDPOINTS"] ?? 2500)
const manyTasks = Number(process.env["MEMORY_TASKS"] ?? 1100)
/** Additional memory of the sender's mock and the runtime. */
const restMax = 5 * megabyte

const actors = Effect.flatMap(EndpointActors, ({ count }) => count)

/** This many copies of an endpoint, each with one delivery that is due now. */
const queueEach = Effect.fnUntraced(function* (endpointId: string, name: string, count: number) {
  const sql = yield* SqlClient.SqlClient
  const at = DateTime.toDateUtc(yield* DateTime.now)
  yield* sql`
    WITH new AS MATERIALIZED (
      SELECT 'whe_' || ${name}::text || n AS endpoint, 'evt_' || ${name}::text || n AS event,
        time_sorted_id('whd_', ${at}::timestamptz) AS id,
        e.user_id, e.url, e.events, e.secret, e.secret_preview
      FROM webhook_endpoints e, generate_series(1, ${count}::int) n WHERE e.id = ${endpointId}
    ), made AS (
      INSERT INTO webhook_endpoints
        (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
      SELECT endpoint, user_id, url, events, true, secret, secret_preview, ${at}, ${at} FROM new
    ), events AS (
      INSERT INTO events (id, created_at, user_id, type, body)
      SELECT event, ${at}, user_id, 'balance.low', convert_to('{}', 'UTF8') FROM new
    ), deliveries AS (
      INSERT INTO deliveries
        (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status, updated_at)
      SELECT id, ${at}, user_id, endpoint, event, ${at}, 'balance.low', 'pending', ${at} FROM new
    )
    INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at) SELECT id, ${at}, endpoint, ${at} FROM new`
})

describe("memory", () => {
  it.effect(
    "of thousands of endpoints is freed with their actors, one or two minutes after their deliveries",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        const { id } = (yield* user.call("POST", endpoints, hook)).json
        const round = Effect.fnUntraced(function* (name: string, count: number) {
          yield* queueEach(id, name, count)
          yield* advance("5 seconds", "5 seconds")
          yield* eventually(sql`SELECT 1 FROM delivery_queue LIMIT 1`, (rows) => rows.length === 0)
          const busy = yield* actors
          yield* advance("100 seconds", "5 seconds")
          return { busy, idle: yield* actors }
        })
        yield* round("a", 500)
        const before = kept()
        const { busy, idle } = yield* round("b", manyEndpoints)
        assert.deepStrictEqual([busy, idle], [manyEndpoints, 0])
        yield* heapGrewLessThan(restMax, before)
      }).pipe(Effect.provide(layerGateway({ webhook: () => Effect.succeed(mockOutcome(200)) }))),
    240_000
  )

  it.effect(
    "of more than a thousand finished tasks is freed",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 1_000_000 })
        const sql = yield* SqlClient.SqlClient
        const round = Effect.fnUntraced(function* (count: number) {
          yield* Effect.forEach(
            Array.from({ length: count }),
            () => user.call("POST", path, { prompt: "x" }),
            { concurrency: 50, discard: true }
          )
          yield* advance("5 seconds", "1 second")
          yield* eventually(sql`SELECT 1 FROM runs LIMIT 1`, (rows) => rows.length === 0)
          yield* advance("30 seconds", "5 seconds")
        })
        yield* round(300)
        const before = kept()
        yield* round(manyTasks)
        yield* heapGrewLessThan(restMax, before)
      }).pipe(Effect.provide(layerGateway({ vendor: instant }))),
    240_000
  )
})

/** Its jobs are done when they are submitted. */
const instant = {
  submit: () =>
    Effect.succeed({
      _tag: "Done" as const,
      result: { items: [{ _tag: "Bytes" as const, bytes: new Uint8Array([1]), mime: "image/png" }] }
    })
}
